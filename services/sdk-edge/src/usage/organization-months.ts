import type { QuotaEntry } from "@halyard/contracts";
import type { Refusal } from "@halyard/service";
import { type Month, monthOf } from "./month.ts";
import { monthFields, monthRefusal } from "./month-fields.ts";

/**
 * What each organization has used of the present month, as far as this edge can know: what
 * usage-metering has counted, from all edges, and this edge's own requests that are not in that number
 * yet. A request of this edge is `fresh`, and then `told`, as soon as it is taken to be sent: from then
 * on any number may have it in it, or not yet. While usage-metering, or NATS, is away the last number
 * stands and this edge's own requests add to it.
 *
 * Within a month, what is known to be used never falls. A number that comes may lack what was told,
 * because another edge's requests made it, or because usage-metering has a backlog; so of what was told
 * as much is kept as it takes to stay where one was. That is never too much: every request in the sum was
 * made, and none is in it twice, because what is fresh is in no number, and the rest is the greater of two
 * sums that were both right. It may be too little, by what others have used while the number lacks what
 * this edge has told, until usage-metering has caught up.
 */
export type OrganizationMonth = {
  /** By the plan; infinite where it has no limit. */
  limit: number;
  /** The highest that was heard from usage-metering, of the present month and of one other. */
  numbers: readonly MonthNumber[];
  /** That of the present month; 0 while there is none. */
  counted: number;
  told: number;
  fresh: number;
  /** The text for answers and refusals, made at most once a second. */
  text: { madeAtMs: number; fields: readonly string[]; refusal: Refusal } | undefined;
};

type MonthNumber = { readonly month: string; readonly requests: number };

export type OrganizationMonths = {
  of(organizationId: string): OrganizationMonth;
  /** Another month has come, or by a clock that was put back the one before. */
  turnTo(month: Month): void;
  hear(entry: QuotaEntry): void;
  /** What the plan allows has changed. */
  limitChanged(organizationId: string): void;
  /** What is fresh is being sent from now on. */
  take(): void;
  /** `RateLimit-Policy` and `RateLimit`; none where nothing is limited. */
  fields(one: OrganizationMonth, nowMs: number): readonly string[];
  refusal(one: OrganizationMonth, nowMs: number): Refusal;
};

export function usedOf({ counted, told, fresh }: OrganizationMonth): number {
  return counted + told + fresh;
}

/** Figures may be as of the last second. */
const textLifetimeMs = 1_000;

export function createOrganizationMonths(options: {
  /** Infinite where nothing is known of an organization, or it may use what it likes. */
  limitOf: (organizationId: string) => number;
}): OrganizationMonths {
  const months = new Map<string, OrganizationMonth>();
  let present = monthOf(0);

  function of(organizationId: string): OrganizationMonth {
    let one = months.get(organizationId);
    if (one === undefined) {
      one = unused(options.limitOf(organizationId));
      months.set(organizationId, one);
    }
    return one;
  }

  function textOf(one: OrganizationMonth, nowMs: number) {
    const ageMs = nowMs - (one.text?.madeAtMs ?? Number.NaN);
    // Below zero: the clock was put back.
    if (one.text !== undefined && ageMs >= 0 && ageMs < textLifetimeMs) return one.text;
    const standing = { limit: one.limit, used: usedOf(one), month: present, nowMs };
    const text = {
      madeAtMs: nowMs,
      fields: monthFields(standing),
      refusal: monthRefusal(standing),
    };
    one.text = text;
    return text;
  }

  return {
    of,
    turnTo(month) {
      present = month;
      for (const one of months.values()) {
        one.counted = countedIn(present, one);
        one.told = 0;
        one.fresh = 0;
        one.text = undefined;
      }
    },
    hear(entry) {
      const one = of(entry.organization_id);
      const known = one.numbers.find(({ month }) => month === entry.month);
      if (known !== undefined && known.requests >= entry.requests) return;
      one.numbers = withNumber(one.numbers, entry, present);
      if (entry.month !== present.name) return;
      const usedBefore = usedOf(one);
      one.counted = entry.requests;
      one.told = Math.max(0, usedBefore - one.counted - one.fresh);
    },
    limitChanged(organizationId) {
      const one = months.get(organizationId);
      if (one === undefined) return;
      one.limit = options.limitOf(organizationId);
      one.text = undefined;
    },
    take() {
      for (const one of months.values()) {
        one.told += one.fresh;
        one.fresh = 0;
      }
    },
    fields: (one, nowMs) =>
      one.limit === Number.POSITIVE_INFINITY ? none : textOf(one, nowMs).fields,
    refusal: (one, nowMs) => textOf(one, nowMs).refusal,
  };
}

const none: readonly string[] = [];

function unused(limit: number): OrganizationMonth {
  return {
    limit,
    numbers: [],
    counted: 0,
    told: 0,
    fresh: 0,
    text: undefined,
  };
}

function countedIn(present: Month, { numbers }: OrganizationMonth): number {
  return numbers.find(({ month }) => month === present.name)?.requests ?? 0;
}

/**
 * Keeps the present month's number beside one of another month. That may have come early, from a clock
 * that is ahead of this edge's, and must not hide what is used now; or it is one that was present until
 * a moment ago. Of a third month, one that is over goes first, and otherwise the one that was heard of
 * the longest time ago and is not the present one.
 */
function withNumber(
  numbers: readonly MonthNumber[],
  { month, requests }: QuotaEntry,
  present: Month,
): readonly MonthNumber[] {
  const all = [...numbers.filter((one) => one.month !== month), { month, requests }];
  if (all.length <= 2) return all;
  const least =
    all.find((one) => one.month < present.name) ?? all.find((one) => one.month !== present.name);
  return all.filter((one) => one !== least);
}
