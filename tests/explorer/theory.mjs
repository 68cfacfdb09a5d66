// Calls functions of the theory of the page: reads {folder, calls: {name: [[argument, …], …]}} from standard input and
// writes {names: {module: [export, …]}, constants, answers: {name: [answer, …]}}. Infinities and NaN are strings.
import { readFileSync, readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const SPECIAL = { inf: Infinity, "-inf": -Infinity, nan: NaN };

// Functions of numbers that are given by name: {"$": name, "with": [parameters]}.
const CURVES = {
  power: ([a, b]) => (x) => [x ** a - b / x, a * x ** a + b / x],
  wave: ([a, b, c]) => (x) => (x === Infinity ? 1e3 : (Math.log(x) - a) ** 2 + b * Math.cos(c * Math.log(x)) + 5),
  kink: ([a, b]) => (x) => 1 + b * Math.abs(Math.log(x) - a),
  jump: ([a, b]) => (x) => (x === Infinity ? b : 2 + a / (1 + x)),
  valley: ([a, b, c]) => (one, two) => {
    const [x, y] = [one, two].map((size) => Math.min(Math.max(Math.log(size), -30), 30));
    return 1 + (x - a) ** 2 + (y - b) ** 2 + c * (x - a) * (y - b);
  },
  escape: () => (state, out) => {
    out[0] = state[0] ** 2;
  },
  nowhere: () => () => [NaN, NaN],
  rotation: ([a, b]) => (state, out) => {
    out[0] = a * state[1];
    out[1] = -a * state[0];
    out[2] = b * state[2] * (1 - state[2]);
  },
};

function decoded(value) {
  if (typeof value === "string") return value in SPECIAL ? SPECIAL[value] : value;
  if (Array.isArray(value)) return value.map(decoded);
  if (value === null || typeof value !== "object") return value;
  if (value.$) return CURVES[value.$](value.with);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, decoded(entry)]));
}

function encoded(value) {
  if (typeof value === "number") return Number.isFinite(value) ? value : { Infinity: "inf", "-Infinity": "-inf", NaN: "nan" }[value];
  if (ArrayBuffer.isView(value)) return Array.from(value, encoded);
  if (Array.isArray(value)) return value.map(encoded);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, encoded(entry)]));
}

function answered(call, given) {
  try {
    return encoded(call(...given.map(decoded)));
  } catch (error) {
    return { error: String(error) };
  }
}

const { folders, calls } = JSON.parse(readFileSync(0, "utf8"));
const found = [];
for (const folder of folders) {
  const [names, theory] = [{}, {}];
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".js")).sort()) {
    const module = await import(pathToFileURL(`${folder}/${file}`));
    names[file] = Object.keys(module).sort();
    Object.assign(theory, module);
  }
  const constants = Object.entries(theory).filter(([, value]) => typeof value !== "function");
  const answers = Object.entries(calls).map(([name, all]) => [name, all.map((given) => answered(theory[name], given))]);
  found.push({ names, constants: encoded(Object.fromEntries(constants)), answers: Object.fromEntries(answers) });
}
process.stdout.write(JSON.stringify(found));
