"""Two scores, never mixed: task quality (`rubric`) and process maturity (`maturity`)."""
