/** The fixed points of separate attention as a graph: what each holds, its loss, and the ways out. */
import { fixedPoint, growth, reachable, stability } from "../../theory/fixed_points.js";
import { loss, modes, moments } from "../../theory/population.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { LOSS, problemLine, problemOf } from "./staircase.js";

const FEW = 16; // fixed points that are named, and whose ways out are all drawn

export const fixedPointsView = {
  heavy: true,
  /** @param {Record<string, any>} state */
  picture(state) {
    const law = moments(problemOf(state));
    const sets = reachable(law, state.H);
    const losses = sets.map((set) => loss(law, fixedPoint(law, set)));
    const order = growth(law)
      .map((rate, mode) => ({ rate, mode }))
      .sort((one, other) => other.rate - one.rate)
      .map(({ mode }) => mode);
    const places = spread(sets, losses);
    const most = Math.max(...sets.map((set) => set.length));
    const numberOf = new Map(sets.map((set, i) => [set.join(), i]));
    const links = sets
      .flatMap((set, i) =>
        set.length === most
          ? []
          : order
              .filter((mode) => !set.includes(mode))
              .map((mode, rank) => {
                const to = numberOf.get([...set, mode].sort((one, other) => one - other).join()) ?? i;
                const first = rank === 0 && set.every((one) => order.slice(0, set.length).includes(one));
                return {
                  x1: places[i],
                  y1: losses[i],
                  x2: places[to],
                  y2: losses[to],
                  tone: first ? "vermilion" : "soft",
                  head: true,
                  width: first ? 3 : 1,
                  first,
                };
              }),
      )
      .filter((link) => link.first || sets.length <= FEW);
    const saddles = sets.filter((set) => stability(law, set).negative > 0 || stability(law, set).degenerate).length;
    const least = Math.min(...losses);
    return {
      charts: [
        {
          title: `Loss of ${sets.length} fixed points against the number of modes they hold.`,
          x: { name: "modes that are held", whole: true, low: -0.5, high: most + 0.6 },
          y: {
            name: LOSS,
            low: Math.max(0, least - 0.08 * (law.nullLoss - least)),
            high: law.nullLoss + 0.1 * (law.nullLoss - least),
          },
          curves: [],
          links,
          dots: [{ key: "points", name: "fixed points", x: places, y: losses, tone: "blue", full: true }],
          notes:
            sets.length <= FEW
              ? sets.map((set, i) => ({
                  x: places[i],
                  y: losses[i],
                  text: set.length ? `{${set.map((one) => one + 1).join(", ")}}` : "none",
                }))
              : [],
        },
      ],
      answer: `There are ${sets.length} fixed points, one for each set of at most ${most} of ${modes(law).contribution.length} modes; at ${saddles} of them the flow only lingers. From a small start it takes the orange way, ${order
        .slice(0, most)
        .map((mode) => mode + 1)
        .join(", ")}, to ${shown(
        losses[
          numberOf.get(
            order
              .slice(0, most)
              .sort((one, other) => one - other)
              .join(),
          ) ?? 0
        ],
      )}; the least loss is ${shown(least)}.`,
      numbers: { losses, least },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import iclab
from iclab.theory import dynamics, population
${problemLine(state)}
moments = population.moments(problem)
sets = list(dynamics.reachable(moments, ${pythonic(state.H)}))
points = [population.loss(moments, dynamics.fixed_point(moments, one)) for one in sets]
print(dict(zip(sets, points)))`,
};

/** Places of fixed points: the number of modes, and beside each other where several hold as many. @param {number[][]} sets @param {number[]} losses */
function spread(sets, losses) {
  return sets.map((set, i) => {
    const group = sets.flatMap((one, k) => (one.length === set.length ? [k] : []));
    const rank = group.sort((one, other) => losses[other] - losses[one]).indexOf(i);
    return set.length + (group.length > 1 ? 0.6 * (rank / (group.length - 1) - 0.5) : 0);
  });
}
