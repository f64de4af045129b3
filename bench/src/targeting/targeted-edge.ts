import type { KeyKind } from "@halyard/api-keys";
import type { Bench } from "../benchmark.ts";
import { startNats } from "../system/backends.ts";
import { awaitReady, type Service, startEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import { flagState, type TargetedFlag } from "./targeted-flags.ts";

/** An edge with one environment, whose flags depend on the user. */
export type TargetedEdge = { edge: Service; key: string; natsVersion: string };

export async function startTargetedEdge(
  bench: Bench,
  flags: readonly TargetedFlag[],
  options: { keyKind?: KeyKind; core?: string | undefined } = {},
): Promise<TargetedEdge> {
  const { keyKind = "client", core = bench.cores?.server } = options;
  const nats = await startNats(bench);
  const content = snapshotContent({
    environments: 1,
    flagsPerEnvironment: flags.length,
    keyKind,
    flagState: (number) => flagState(flags[number] as TargetedFlag),
  });
  await writeSnapshot(nats.url, content);
  const edge = await startEdge(bench, { natsUrl: nats.url, core });
  await awaitReady(edge);
  return { edge, key: content.key, natsVersion: nats.version };
}
