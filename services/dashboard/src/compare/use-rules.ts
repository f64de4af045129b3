import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { type Api, unwrap } from "../api/client.ts";
import { patiently } from "../api/patiently.ts";
import type { ListedFlag, ListedState } from "../flags/flag-search.ts";
import { stateRoute } from "../flags/state-route.ts";
import { useKeySession } from "../session/session.tsx";
import type { TargetingRule } from "../state/flag-state.ts";
import type { RulesOf } from "./compare-flags.ts";
import { runPool } from "./run-pool.ts";

type Wanted = { flag: ListedFlag; state: ListedState };
type Known = ReadonlyMap<string, readonly TargetingRule[]>;
type Learn = (more: Known) => void;

/** States that are read without a question. The page offers to read more in steps of this size. */
const stepSize = 500;
/** Time between two updates of the page while rules are read. */
const showMs = 400;

/** The rules of a version never change, so they are kept as long as the session. */
const keyOf = (flag: ListedFlag, state: ListedState) =>
  `${flag.id} ${state.environment_id} ${state.version}`;
const knownKey = ["compared-rules"];
const nothing: Known = new Map();

/** Looks up rules that need no request: rules read before, and the list's rules of the key's own environment. */
export function useKnownRules(): { rulesOf: RulesOf; learn: Learn } {
  const client = useQueryClient();
  const read = useCallback(() => client.getQueryData<Known>(knownKey) ?? nothing, [client]);
  const [known, setKnown] = useState(read);
  const rulesOf: RulesOf = useCallback(
    (flag, state) => known.get(keyOf(flag, state)) ?? listedRules(flag, state),
    [known],
  );
  const learn = useCallback(
    (more: Known) => {
      const all = new Map([...read(), ...more]);
      client.setQueryData<Known>(knownKey, all);
      setKnown(all);
    },
    [client, read],
  );
  return { rulesOf, learn };
}

/** Returns the rules in the list, unless a toggle on this page has changed the version of the state since. */
function listedRules(flag: ListedFlag, state: ListedState): readonly TargetingRule[] | undefined {
  const isOwn = state.environment_id === flag.environment_id;
  return isOwn && flag.targeting_rules.length === state.rule_count
    ? flag.targeting_rules
    : undefined;
}

export type RulesReading = {
  /** States that are being read. */
  left: number;
  /** States beyond the present step. */
  beyond: number;
  error: unknown;
  readMore: () => void;
  retry: () => void;
};

/** Reads the wanted rules in steps, and reports progress. */
export function useReadRules(wanted: readonly Wanted[], learn: Learn): RulesReading {
  const { api } = useKeySession();
  const [error, setError] = useState<unknown>();
  const [run, setRun] = useState(0);
  const [steps, setSteps] = useState(1);
  const [readCount, setReadCount] = useState(0);
  const next = wanted.slice(0, Math.max(0, steps * stepSize - readCount));
  const isIdle = next.length === 0;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a run continues while `next` shrinks; another run replaces it.
  useEffect(() => {
    if (isIdle) return;
    const ending = new AbortController();
    setError(undefined);
    const show = (more: Known) => {
      learn(more);
      setReadCount((count) => count + more.size);
    };
    readAll(api, next, show, ending.signal)
      .then(() => setRun((count) => count + 1))
      .catch((reason: unknown) => ending.signal.aborted || setError(reason));
    return () => ending.abort();
  }, [isIdle, run, api]);
  return {
    left: next.length,
    beyond: wanted.length - next.length,
    error,
    readMore: () => setSteps(steps + 1),
    retry: () => setRun(run + 1),
  };
}

/** Reads states, and shows their rules in groups, so that the page is not drawn for each of them. */
async function readAll(
  api: Api,
  wanted: readonly Wanted[],
  show: Learn,
  signal: AbortSignal,
): Promise<void> {
  let read = new Map<string, readonly TargetingRule[]>();
  const flush = () => {
    if (read.size === 0 || signal.aborted) return;
    const more = read;
    read = new Map();
    show(more);
  };
  const timer = setInterval(flush, showMs);
  const task = async ({ flag, state }: Wanted) => {
    const path = { flagId: flag.id, envId: state.environment_id };
    const request = () => unwrap(api.GET(stateRoute, { params: { path }, signal }));
    const found = await patiently(request);
    read.set(keyOf(flag, state), found.targeting_rules);
  };
  try {
    await runPool(wanted, task, signal);
  } finally {
    clearInterval(timer);
    flush();
  }
}
