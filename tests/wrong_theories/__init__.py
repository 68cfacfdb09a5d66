"""Wrong theories: changes of formulas, each of which some verdict of a study must notice."""
