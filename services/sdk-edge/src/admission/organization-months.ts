import type { QuotaEntry } from "@halyard/contracts";
import type { Problem } from "@halyard/http";
import type { LimitMember } from "@halyard/rate-limit";
import { type Month, monthMember, monthOf, monthProblem } from "./months.ts";

/**
 * The requests of each organization in the current month, as an edge estimates them: the number that usage-metering has
 * published for all edges, and the requests of this edge that it does not contain.
 *
 * A request is `fresh` until it is taken to be sent. After that, a published number may or may not contain it. Within a
 * month, `known` therefore never decreases: it becomes the higher of itself and the published number. Neither exceeds
 * the true number, so `known` is never too high. It may be too low by the requests of other edges while usage-metering
 * is behind or unavailable.
 */
export type OrganizationMonth = {
  /** The plan's limit; infinite without one. */
  limit: number;
  /** The highest published number by month; the latest to arrive is last. */
  readonly published: Map<string, number>;
  /** Requests of the current month without the fresh ones. */
  known: number;
  fresh: number;
  /** The texts for successful and rejected requests, created at most once a second. */
  text: { madeAtMs: number; member: LimitMember; problem: Problem } | undefined;
};

export type OrganizationMonths = {
  of(organizationId: string): OrganizationMonth;
  /** Makes the month of this time the current one. */
  advanceTo(nowMs: number): void;
  applyQuota(entry: QuotaEntry): void;
  /** Reads the limit of an organization's plan again. */
  limitChanged(organizationId: string): void;
  /** Marks fresh requests as taken to be sent. */
  take(): void;
  /** Returns the month's members of the rate limit fields; undefined without a limit. */
  member(one: OrganizationMonth, nowMs: number): LimitMember | undefined;
  problem(one: OrganizationMonth, nowMs: number): Problem;
};

export function usedOf({ known, fresh }: OrganizationMonth): number {
  return known + fresh;
}

/** Time for which a text is reused. */
const textLifetimeMs = 1_000;

/**
 * Maximum number of published months kept. If clocks differ, a number can arrive before its month begins on this edge.
 */
const maxMonths = 4;

export function createOrganizationMonths(options: {
  /** Infinite for an unknown organization, or one without a limit. */
  limitOf: (organizationId: string) => number;
}): OrganizationMonths {
  const months = new Map<string, OrganizationMonth>();
  let present = monthOf(0);

  function of(organizationId: string): OrganizationMonth {
    let one = months.get(organizationId);
    if (one === undefined) {
      const limit = options.limitOf(organizationId);
      one = { limit, published: new Map(), known: 0, fresh: 0, text: undefined };
      months.set(organizationId, one);
    }
    return one;
  }

  function textOf(one: OrganizationMonth, nowMs: number) {
    const ageMs = nowMs - (one.text?.madeAtMs ?? Number.NaN);
    // Negative if the clock was set back.
    if (one.text !== undefined && ageMs >= 0 && ageMs < textLifetimeMs) return one.text;
    const monthUse = { limit: one.limit, used: usedOf(one), month: present, nowMs };
    one.text = {
      madeAtMs: nowMs,
      member: monthMember(monthUse),
      problem: monthProblem(monthUse),
    };
    return one.text;
  }

  return {
    of,
    advanceTo(nowMs) {
      const month = monthOf(nowMs);
      if (month.name === present.name) return;
      present = month;
      for (const one of months.values()) {
        one.known = one.published.get(month.name) ?? 0;
        one.fresh = 0;
        one.text = undefined;
      }
    },
    applyQuota({ organization_id, month, requests }) {
      const one = of(organization_id);
      const highest = Math.max(requests, one.published.get(month) ?? 0);
      publish(one, { month, requests: highest, present });
      if (month === present.name) one.known = Math.max(one.known, highest);
    },
    limitChanged(organizationId) {
      const one = months.get(organizationId);
      if (one === undefined) return;
      one.limit = options.limitOf(organizationId);
      one.text = undefined;
    },
    take() {
      for (const one of months.values()) {
        one.known += one.fresh;
        one.fresh = 0;
      }
    },
    member: (one, nowMs) =>
      one.limit === Number.POSITIVE_INFINITY ? undefined : textOf(one, nowMs).member,
    problem: (one, nowMs) => textOf(one, nowMs).problem,
  };
}

/**
 * Stores a published number. Beyond the maximum, removes the month that arrived first, unless it is the current one.
 */
function publish(
  { published }: OrganizationMonth,
  { month, requests, present }: { month: string; requests: number; present: Month },
): void {
  published.delete(month);
  published.set(month, requests);
  if (published.size <= maxMonths) return;
  const oldest = [...published.keys()].find((name) => name !== present.name);
  if (oldest !== undefined) published.delete(oldest);
}
