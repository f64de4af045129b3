import type { Plan } from "./product-statements.ts";

/**
 * Nothing that a scheduler does while it runs may read a whole table: that would be quick with few
 * schedules, and with many it would not.
 */
export function assertIndexed({ purpose, text, keptText, indexes }: Plan): void {
  for (const plan of [text, keptText]) {
    if (wholeTable.test(plan)) throw new Error(`${purpose} reads a whole table:\n${plan}`);
    if (!indexes.some((index) => plan.includes(` using ${index} on `)))
      throw new Error(`${purpose} does not read ${indexes.join(" or ")}:\n${plan}`);
  }
}

const wholeTable = /Seq Scan on (?:scheduled_changes|schedules)\b/;
