import { raisedByPlan } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import { type LimitMember, retryAfter } from "@halyard/rate-limit";

/** A calendar month in UTC, the period of a plan's requests. */
export type Month = {
  /** `2027-01`. */
  readonly name: string;
  readonly beganMs: number;
  readonly endsMs: number;
};

/** Returns the month that contains a time. */
export function monthOf(instantMs: number): Month {
  const instant = new Date(instantMs);
  const year = instant.getUTCFullYear();
  const month = instant.getUTCMonth();
  return {
    name: instant.toISOString().slice(0, "2027-01".length),
    beganMs: Date.UTC(year, month, 1),
    endsMs: Date.UTC(year, month + 1, 1),
  };
}

/** The figures for the rate limit fields of a month (draft-ietf-httpapi-ratelimit-headers). */
type MonthUse = { limit: number; used: number; month: Month; nowMs: number };

/** Returns the month's members of the rate limit fields. */
export function monthMember(monthUse: MonthUse): LimitMember {
  const remaining = Math.max(0, monthUse.limit - monthUse.used);
  return {
    policy: policyOf(monthUse),
    limit: `"monthly";r=${remaining};t=${secondsLeft(monthUse)}`,
  };
}

/** Returns the problem of a request beyond the month's limit. */
export function monthProblem(monthUse: MonthUse): Problem {
  const seconds = secondsLeft(monthUse);
  return createProblem("RATE_001", messageOf(monthUse), {
    "retry-after": retryAfter(seconds),
    "ratelimit-policy": policyOf(monthUse),
    ratelimit: `"monthly";r=0;t=${seconds}`,
  });
}

function messageOf({ limit, month }: MonthUse): string {
  if (limit === 0) return `The organization's plan allows no requests. ${raisedByPlan}`;
  const next = new Date(month.endsMs).toISOString().replace(".000Z", "Z");
  return `All ${grouped.format(limit)} requests that the organization's plan allows in a month are used until ${next}. ${raisedByPlan}`;
}

/** Formats numbers like `500,000`. */
const grouped = new Intl.NumberFormat("en-US");

function policyOf({ limit, month }: MonthUse): string {
  return `"monthly";q=${limit};w=${(month.endsMs - month.beganMs) / 1_000}`;
}

/** Returns the whole seconds until the end of the month. Never zero, which clients interpret as "no limit". */
function secondsLeft({ month, nowMs }: MonthUse): number {
  return Math.max(1, Math.ceil((month.endsMs - nowMs) / 1_000));
}
