import { readFileSync, writeFileSync } from "node:fs";
import type { SurvivedFault } from "./fault-story.ts";

/** With `RECORD_RELIABILITY=true`, writes a table of docs/reliability.md. `version` is that of the server with faults. */
export function recordFaults(
  server: "NATS" | "PostgreSQL",
  { version, results }: { version: string | undefined; results: readonly SurvivedFault[] },
): void {
  if (process.env.RECORD_RELIABILITY !== "true") return;
  const head = [
    `| Fault of ${server} ${version} | Longest time without an accepted change | without a change in streams | SDK requests answered | Lost or doubled |`,
    "|---|--:|--:|--:|--:|",
  ];
  const file = new URL("../../../docs/reliability.md", import.meta.url);
  const text = readFileSync(file, "utf8");
  const place = new RegExp(`(?<=<!-- faults of ${server} -->\\n).*?(?=<!-- end -->)`, "s");
  writeFileSync(file, text.replace(place, `${[...head, ...results.map(row)].join("\n")}\n`));
}

function row({
  name,
  changesPausedMs,
  streamsPausedMs,
  requests,
  unanswered,
  faults,
}: SurvivedFault) {
  const seconds = [changesPausedMs, streamsPausedMs].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
  const answered = `${requests - unanswered.length} of ${requests}`;
  return `| ${[name, ...seconds, answered, faults.length].join(" | ")} |`;
}
