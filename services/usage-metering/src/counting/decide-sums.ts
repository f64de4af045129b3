import {
  type EnvironmentUsage,
  type EvaluationsReported,
  hourMs,
  parseInstant,
  type UsageRecorded,
} from "@halyard/contracts";
import { addUp, type SumRow, type SumTable, sumTables } from "./sum-tables.ts";

export type Sums = {
  /** The rows to merge into each table, one for each key. Tables are in the order of their locks. */
  rows: ReadonlyMap<SumTable, readonly SumRow[]>;
  /** Requests that count in the current hour, because the edge's clock cannot be right. */
  misdated: number;
};

export function sumUp(messages: readonly UsageRecorded[], nowMs: number): Sums {
  const { months, requests, bulkAnswers, environmentsSeen, keysSeen } = sumTables;
  const { add, rows } = createRows();
  const seen = (answered: string) => instant(seenAtMs(millisecondsOf(answered), nowMs));
  let misdated = 0;

  function addUsage(usage: EnvironmentUsage): void {
    const sentMs = millisecondsOf(usage.hour);
    const countedMs = countedHourMs(sentMs, nowMs);
    const hour = instant(countedMs);
    const month = `${monthOf(countedMs)}-01`;
    const organization_id = usage.organization_id.toLowerCase();
    const project_id = usage.project_id.toLowerCase();
    const environment_id = usage.environment_id.toLowerCase();
    for (const [endpoint, count = 0] of Object.entries(usage.requests)) {
      const scope = { organization_id, project_id, environment_id, endpoint, hour };
      add(requests, { ...scope, requests: count });
      add(months, { organization_id, month, requests: count });
      if (countedMs !== beginningOfHour(sentMs)) misdated += count;
    }
    const { bulk_answers: answers, bulk_answered_at: answeredAt } = usage;
    if (answers > 0) add(bulkAnswers, { environment_id, hour, answers });
    if (answeredAt !== null)
      add(environmentsSeen, { environment_id, evaluated_at: seen(answeredAt) });
    for (const { evaluations, variations = {}, ...flag } of usage.flags) {
      const flag_id = flag.flag_id.toLowerCase();
      const evaluated_at = seen(flag.evaluated_at);
      addFlag(add, { flag_id, environment_id, countedMs, evaluations, evaluated_at });
      addVariations(add, { flag_id, environment_id, hour }, Object.entries(variations));
    }
  }

  for (const { environments, keys } of messages) {
    environments.forEach(addUsage);
    for (const { key_id, used_at } of keys) add(keysSeen, { key_id, used_at: seen(used_at) });
  }
  return { rows: rows(), misdated };
}

/**
 * Returns the rows to merge into each table for reports of applications. Evaluations count in the hour in which the
 * reported period ended.
 */
export function sumUpReports(reports: readonly EvaluationsReported[], nowMs: number): Sums["rows"] {
  const { add, rows } = createRows();
  for (const report of reports) {
    const environment_id = report.environment_id.toLowerCase();
    const endedMs = millisecondsOf(report.evaluated_at);
    const countedMs = countedHourMs(endedMs, nowMs);
    const evaluated_at = reportSeenAt(report, nowMs);
    for (const { flag_id: id, ...counts } of report.flags) {
      const flag_id = id.toLowerCase();
      const byVariation = Object.entries(counts.variations ?? {}).filter(([, count]) => count > 0);
      const evaluations = [counts.true, counts.false, ...byVariation.map(([, count]) => count)];
      const sum = evaluations.reduce(addUp);
      if (sum === 0) continue;
      addFlag(add, { flag_id, environment_id, countedMs, evaluations: sum, evaluated_at });
      addVariations(add, { flag_id, environment_id, hour: instant(countedMs) }, byVariation);
    }
  }
  return rows();
}

/** Returns the end of the reported period or, if it cannot be right, the current time. */
export function reportSeenAt(report: EvaluationsReported, nowMs: number): string {
  return instant(seenAtMs(millisecondsOf(report.evaluated_at), nowMs));
}

type FlagEvaluations = {
  flag_id: string;
  environment_id: string;
  countedMs: number;
  evaluations: number;
  evaluated_at: string;
};

type Add = ReturnType<typeof createRows>["add"];

/** Adds evaluations of a single flag to the sum of their hour, and to their total. */
function addFlag(add: Add, { countedMs, evaluated_at, ...evaluated }: FlagEvaluations): void {
  add(sumTables.flags, { ...evaluated, hour: instant(countedMs) });
  add(sumTables.flagsSeen, { ...evaluated, evaluated_at });
}

/** Adds evaluations of a typed flag to the sums of its variations. */
function addVariations(
  add: Add,
  scope: { flag_id: string; environment_id: string; hour: string },
  byVariation: readonly (readonly [variation: string, evaluations: number])[],
): void {
  for (const [variation, evaluations] of byVariation)
    add(sumTables.variations, { ...scope, variation, evaluations });
}

/** Collects rows, and merges those with the same key. */
function createRows() {
  const byTable = new Map<SumTable, Map<string, SumRow>>(
    Object.values(sumTables).map((table) => [table, new Map()]),
  );
  return {
    add<Row extends SumRow>(table: SumTable<Row>, more: Row): void {
      const name = Object.keys(table.key)
        .map((column) => more[column])
        .join(" ");
      const rows = byTable.get(table);
      const known = rows?.get(name);
      rows?.set(name, known === undefined ? more : { ...known, ...merge(table, known, more) });
    },
    rows: () => new Map([...byTable].map(([table, rows]) => [table, [...rows.values()]])),
  };
}

/** Returns the sum of each number, and the later of two times. */
function merge({ values }: SumTable, known: SumRow, more: SumRow): SumRow {
  return Object.fromEntries(
    values.map((column) => {
      const [one = "", other = ""] = [known[column], more[column]];
      if (typeof one === "number") return [column, addUp(one, Number(other))];
      return [column, other > one ? other : one];
    }),
  );
}

/** Returns the latest time in a message; undefined if it contains none. */
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

/**
 * Maximum time by which an edge's clock may be ahead. A wrong clock must neither move usage to a distant month nor
 * prevent later times from being stored.
 */
const maxAheadMs = hourMs;
/** Maximum age of usage. Messages can wait this long while this service is unavailable, or an edge is disconnected. */
const maxLateMs = 7 * 24 * hourMs;

/**
 * Returns the beginning of the hour that usage counts in: the sent one or, if that cannot be right, the current one.
 */
export function countedHourMs(sentMs: number, nowMs: number): number {
  const answered = beginningOfHour(sentMs);
  return answered - nowMs > maxAheadMs || nowMs - answered > maxLateMs
    ? beginningOfHour(nowMs)
    : answered;
}

/** Returns the sent time or, if it cannot be right, the current one. */
export function seenAtMs(sentMs: number, nowMs: number): number {
  return sentMs > nowMs || nowMs - sentMs > maxLateMs ? nowMs : sentMs;
}

function beginningOfHour(ms: number): number {
  return ms - (ms % hourMs);
}

/** Returns the month in UTC, such as `2027-01`. */
export function monthOf(ms: number): string {
  return instant(ms).slice(0, "2027-01".length);
}

const instant = (ms: number) => new Date(ms).toISOString();

/** Parses a time. The schema has checked the format. */
function millisecondsOf(text: string): number {
  return Math.max(0, parseInstant(text) ?? 0);
}
