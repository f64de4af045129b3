import { type EnvironmentUsage, parseInstant, type UsageRecorded } from "@halyard/contracts";
import { beginningOfHour, countedHourMs, monthOf, seenAtMs } from "./decide-when.ts";

/** What messages add up to: what is to be added to which row, each row once. */
export type Sums = {
  requests: readonly RequestSum[];
  months: readonly MonthSum[];
  bulkAnswers: readonly BulkAnswerSum[];
  flags: readonly FlagSum[];
  environmentsSeen: readonly EnvironmentSeen[];
  flagsSeen: readonly FlagSeen[];
  keysSeen: readonly KeySeen[];
  /** Requests whose hour could not be believed, which are in the present hour now. */
  misdated: number;
};

export type RequestSum = {
  organizationId: string;
  projectId: string;
  environmentId: string;
  endpoint: string;
  hourMs: number;
  requests: number;
};
export type MonthSum = { organizationId: string; month: string; requests: number };
export type BulkAnswerSum = { environmentId: string; hourMs: number; answers: number };
export type FlagSum = {
  flagId: string;
  environmentId: string;
  hourMs: number;
  evaluations: number;
};
export type EnvironmentSeen = { environmentId: string; atMs: number };
export type FlagSeen = { flagId: string; environmentId: string; atMs: number };
export type KeySeen = { keyId: string; atMs: number };

export function sumUp(messages: readonly UsageRecorded[], nowMs: number): Sums {
  const rows = emptyRows();
  let misdated = 0;

  function add(usage: EnvironmentUsage): void {
    const { organization_id, project_id, environment_id, bulk_answers, bulk_answered_at } = usage;
    const toldMs = millisecondsOf(usage.hour);
    const hourMs = countedHourMs(toldMs, nowMs);
    const month = monthOf(hourMs);
    const here = {
      organizationId: organization_id.toLowerCase(),
      projectId: project_id.toLowerCase(),
      environmentId: environment_id.toLowerCase(),
    };
    const { environmentId, organizationId } = here;
    for (const [endpoint, count = 0] of Object.entries(usage.requests)) {
      rows.requests.add({ ...here, endpoint, hourMs, requests: count });
      rows.months.add({ organizationId, month, requests: count });
      if (hourMs !== beginningOfHour(toldMs)) misdated += count;
    }
    if (bulk_answers > 0) rows.bulkAnswers.add({ environmentId, hourMs, answers: bulk_answers });
    if (bulk_answered_at !== null)
      rows.environmentsSeen.add({ environmentId, atMs: seen(bulk_answered_at) });
    for (const { flag_id, evaluations, evaluated_at } of usage.flags) {
      const flagId = flag_id.toLowerCase();
      rows.flags.add({ flagId, environmentId, hourMs, evaluations });
      rows.flagsSeen.add({ flagId, environmentId, atMs: seen(evaluated_at) });
    }
  }

  const seen = (instant: string) => seenAtMs(millisecondsOf(instant), nowMs);
  for (const { environments, keys } of messages) {
    for (const usage of environments) add(usage);
    for (const { key_id, used_at } of keys)
      rows.keysSeen.add({ keyId: key_id, atMs: seen(used_at) });
  }
  return {
    requests: rows.requests.all(),
    months: rows.months.all(),
    bulkAnswers: rows.bulkAnswers.all(),
    flags: rows.flags.all(),
    environmentsSeen: rows.environmentsSeen.all(),
    flagsSeen: rows.flagsSeen.all(),
    keysSeen: rows.keysSeen.all(),
    misdated,
  };
}

function emptyRows() {
  return {
    requests: rowsBy<RequestSum>({
      key: (row) => `${row.environmentId} ${row.hourMs} ${row.endpoint} ${row.organizationId}`,
      join: (row, more) => ({ ...row, requests: row.requests + more.requests }),
    }),
    months: rowsBy<MonthSum>({
      key: (row) => `${row.organizationId} ${row.month}`,
      join: (row, more) => ({ ...row, requests: row.requests + more.requests }),
    }),
    bulkAnswers: rowsBy<BulkAnswerSum>({
      key: (row) => `${row.environmentId} ${row.hourMs}`,
      join: (row, more) => ({ ...row, answers: row.answers + more.answers }),
    }),
    flags: rowsBy<FlagSum>({
      key: (row) => `${row.flagId} ${row.environmentId} ${row.hourMs}`,
      join: (row, more) => ({ ...row, evaluations: row.evaluations + more.evaluations }),
    }),
    environmentsSeen: rowsBy<EnvironmentSeen>({ key: (row) => row.environmentId, join: later }),
    flagsSeen: rowsBy<FlagSeen>({
      key: (row) => `${row.flagId} ${row.environmentId}`,
      join: later,
    }),
    keysSeen: rowsBy<KeySeen>({ key: (row) => row.keyId, join: later }),
  };
}

/** The latest instant that a message tells of; undefined where it tells of none. */
export function newestInstantMs({ environments, keys }: UsageRecorded): number | undefined {
  const instants = [
    ...environments.flatMap(({ bulk_answered_at, flags }) => [
      ...(bulk_answered_at === null ? [] : [bulk_answered_at]),
      ...flags.map(({ evaluated_at }) => evaluated_at),
    ]),
    ...keys.map(({ used_at }) => used_at),
  ];
  if (instants.length === 0) return undefined;
  return instants.reduce((newest, one) => Math.max(newest, millisecondsOf(one)), 0);
}

/** The schema has seen to it that the text is an instant that exists. */
function millisecondsOf(instant: string): number {
  return Math.max(0, parseInstant(instant) ?? 0);
}

function later<Seen extends { atMs: number }>(one: Seen, other: Seen): Seen {
  return other.atMs > one.atMs ? other : one;
}

/** Rows of different keys: what is added to one of a key is joined with it. */
function rowsBy<Row>({ key, join }: { key(row: Row): string; join(row: Row, more: Row): Row }) {
  const rows = new Map<string, Row>();
  return {
    add(more: Row): void {
      const at = key(more);
      const row = rows.get(at);
      rows.set(at, row === undefined ? more : join(row, more));
    },
    all: (): readonly Row[] => [...rows.values()],
  };
}
