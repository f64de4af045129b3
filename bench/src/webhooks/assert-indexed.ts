import type { Plan } from "./product-statements.ts";

/**
 * Nothing that a dispatcher does while it runs may read a whole table, nor all that is due of one
 * webhook: that would be quick with few deliveries, and with many it would not.
 */
export function assertIndexed({ purpose, text, keptText }: Plan): void {
  for (const plan of [text, keptText]) {
    if (wholeTable.test(plan)) throw new Error(`${purpose} reads a whole table:\n${plan}`);
    if (wholeBacklog.test(plan)) throw new Error(`${purpose} reads a whole backlog:\n${plan}`);
  }
}

const wholeTable = /Seq Scan on (?:deliveries|lanes|attempts|inbox|webhooks)\b/;
const wholeBacklog = /Bitmap Index Scan on deliveries_due\b/;
