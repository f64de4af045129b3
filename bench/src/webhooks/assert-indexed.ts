import type { Plan } from "./product-statements.ts";

/**
 * Fails if a statement of the dispatcher reads a whole table or all due deliveries of a webhook, which is
 * slow with many deliveries.
 */
export function assertIndexed({ purpose, text, genericText }: Plan): void {
  for (const plan of [text, genericText ?? text]) {
    if (wholeTable.test(plan)) throw new Error(`${purpose} reads a whole table:\n${plan}`);
    if (wholeBacklog.test(plan)) throw new Error(`${purpose} reads a whole backlog:\n${plan}`);
  }
}

const wholeTable = /Seq Scan on (?:deliveries|lanes|attempts|inbox|webhooks)\b/;
const wholeBacklog = /Bitmap Index Scan on deliveries_due\b/;
