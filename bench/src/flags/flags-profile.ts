import type { Bench } from "../benchmark.ts";
import { profilePolling } from "../profile/profile-polling.ts";
import { profilingInto } from "../profile/profiling.ts";
import { startPolledEdge } from "./polled-edge.ts";

/** Compares the edge's CPU profile with that of the bare server. */
export async function profileFlags(bench: Bench): Promise<string> {
  const profiling = profilingInto(bench);
  const { edge, polls } = await startPolledEdge(bench, profiling.nodeOptions);
  return profilePolling(bench, { edge, pollings: polls, profiling });
}
