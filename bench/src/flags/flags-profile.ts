import type { Bench } from "../benchmark.ts";
import { profilePolling } from "../profile/profile-polling.ts";
import { profilingInto } from "../profile/profiling.ts";
import { startPolledEdge } from "./polled-edge.ts";

/** Where the time of an answer goes, beside where the bare server's goes. */
export async function profileFlags(bench: Bench): Promise<string> {
  const profiling = profilingInto(bench);
  const { edge, polls } = await startPolledEdge(bench, profiling.nodeOptions);
  return profilePolling(bench, { edge, pollings: polls, profiling });
}
