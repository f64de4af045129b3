import type { Plan } from "./product-statements.ts";

/** Fails if a statement of the scheduler reads a whole table, which is slow with many schedules. */
export function assertIndexed({ purpose, text, genericText, indexes }: Plan): void {
  for (const plan of [text, genericText ?? text]) {
    if (wholeTable.test(plan)) throw new Error(`${purpose} reads a whole table:\n${plan}`);
    const reads = (index: string) =>
      new RegExp(`(?: using |Bitmap Index Scan on )${index}\\b`).test(plan);
    if (!indexes.some(reads))
      throw new Error(`${purpose} does not read ${indexes.join(" or ")}:\n${plan}`);
  }
}

const wholeTable = /Seq Scan on (?:scheduled_changes|schedules)\b/;
