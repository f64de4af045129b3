import type { QuotaEntry } from "@halyard/contracts";
import type { LimitMember } from "@halyard/rate-limit";
import type { Problem } from "@halyard/service";
import { type Month, monthMember, monthOf, monthProblem } from "./months.ts";

/**
 * What each organization has used of the present month, as far as this edge can know: the number that
 * usage-metering published, from all edges, and the requests of this edge that are not part of it.
 *
 * A request is `fresh` until it is taken to be sent. From then on a published number may contain it or not. So
 * within a month `known` never falls: it becomes the higher of itself and the published number. Both were
 * right, so it is never too high. It may be too low by the requests of other edges while usage-metering is
 * behind or unavailable.
 */
export type OrganizationMonth = {
  /** By the plan; infinite without a limit. */
  limit: number;
  /** The highest published number by month; the latest to arrive is last. */
  readonly published: Map<string, number>;
  /** Used requests of the present month without the fresh ones. */
  known: number;
  fresh: number;
  /** The text for answers and rejections, made at most once a second. */
  text: { madeAtMs: number; member: LimitMember; problem: Problem } | undefined;
};

export type OrganizationMonths = {
  of(organizationId: string): OrganizationMonth;
  /** Makes the month of this instant the present one. */
  advanceTo(nowMs: number): void;
  applyQuota(entry: QuotaEntry): void;
  /** The plan's limit has changed. */
  limitChanged(organizationId: string): void;
  /** Fresh requests are being sent. */
  take(): void;
  /** Returns the month's members of the rate limit fields; undefined without a limit. */
  member(one: OrganizationMonth, nowMs: number): LimitMember | undefined;
  problem(one: OrganizationMonth, nowMs: number): Problem;
};

export function usedOf({ known, fresh }: OrganizationMonth): number {
  return known + fresh;
}

/** Figures may be as of the last second. */
const textLifetimeMs = 1_000;

/** Published months that are kept: a number can arrive before its month begins here, if clocks differ. */
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
    // Below zero: the clock was put back.
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

/** Keeps a number, and forgets the month that arrived first unless it is the present one. */
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
