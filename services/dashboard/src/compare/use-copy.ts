import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { type Api, unwrap } from "../api/client.ts";
import { patiently } from "../api/patiently.ts";
import { adviceFor, ConnectionLost, isEditConflict, isTemporary } from "../api/problem.ts";
import type { Environment } from "../api/schema.d.ts";
import { invalidateList } from "../flags/flag-queries.ts";
import type { ListedFlag } from "../flags/flag-search.ts";
import { ifVersion, statePathOf, stateRoute } from "../flags/state-route.ts";
import { useStateWarning } from "../flags/use-change-warning.ts";
import { useKeySession } from "../session/session.tsx";
import type { CopiedFlag, CopyOutcome, PlannedCopy } from "./plan-copy.ts";
import { runPool } from "./run-pool.ts";

export type Pair = { from: Environment; to: Environment };

const readState = (api: Api, flagId: string, envId: string, signal: AbortSignal) =>
  patiently(() => unwrap(api.GET(stateRoute, { params: { path: { flagId, envId } }, signal })));

/** Reads both states of the chosen flags, in the order of the flags. */
export function useCopiedFlags(flags: readonly ListedFlag[], { from, to }: Pair) {
  const { api } = useKeySession();
  const warningOf = useStateWarning(to);
  const [done, setDone] = useState(0);
  const query = useQuery({
    queryKey: ["copied-flags", from.id, to.id, flags.map(({ id }) => id)],
    // A refetch must not replace the preview while a person reads it.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }): Promise<readonly CopiedFlag[]> => {
      setDone(0);
      const read = new Map<string, CopiedFlag>();
      const task = async (flag: ListedFlag) => {
        const [source, target] = await Promise.all([
          readState(api, flag.id, from.id, signal),
          readState(api, flag.id, to.id, signal),
        ]);
        const warning = await warningOf(flag, target, source);
        read.set(flag.id, { flag, source, target, warning });
        setDone(read.size);
      };
      await runPool(flags, task, signal);
      return flags.flatMap(({ id }) => read.get(id) ?? []);
    },
  });
  return { query, done };
}

/** Copies planned changes one after another. Never overwrites a state that changed after the preview. */
export function useCopy(plans: readonly PlannedCopy[], to: Environment) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const isStopped = useRef(false);
  const [isRunning, setRunning] = useState(false);
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, CopyOutcome>>();
  const note = (id: string, outcome: CopyOutcome) =>
    setOutcomes((before) => new Map(before).set(id, outcome));

  async function copy({ flag, version, body }: PlannedCopy): Promise<CopyOutcome> {
    try {
      const path = statePathOf({ flag, environment: to });
      const params = { path, header: ifVersion(version) };
      await unwrap(api.PATCH(stateRoute, { params, body }));
      return { kind: "copied" };
    } catch (error) {
      if (isEditConflict(error)) return { kind: "conflict" };
      // The following changes would fail as well.
      if (isTemporary(error)) isStopped.current = true;
      return { kind: "failed", reason: reasonOf(error) };
    }
  }

  async function start(): Promise<void> {
    isStopped.current = false;
    setRunning(true);
    setOutcomes(new Map(plans.map(({ flag }) => [flag.id, { kind: "waiting" }])));
    for (const plan of plans) {
      if (isStopped.current) {
        note(plan.flag.id, { kind: "stopped" });
        continue;
      }
      note(plan.flag.id, { kind: "running" });
      note(plan.flag.id, await copy(plan));
    }
    setRunning(false);
    await refresh();
  }

  /** Reads the copied flags again, also without a live connection. */
  async function refresh(): Promise<void> {
    for (const { flag } of plans) void client.invalidateQueries({ queryKey: ["flag", flag.key] });
    await invalidateList(client);
  }

  const stop = () => {
    isStopped.current = true;
  };
  return { start, stop, isRunning, outcomes };
}

function reasonOf(error: unknown): string {
  if (error instanceof ConnectionLost)
    return "No response. The change may have been made: compare again before you repeat it.";
  return `${error instanceof Error ? error.message : ""} ${adviceFor(error)}`;
}
