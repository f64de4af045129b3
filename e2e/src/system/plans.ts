/**
 * Plans that tests configure beside the default ones. What a test is not about should not meet a limit:
 * on `unlimited` there is none.
 */
export type Limits = {
  requests_per_month: number | null;
  sse_connections: number | null;
  projects: number | null;
};

export const noLimits: Limits = {
  requests_per_month: null,
  sse_connections: null,
  projects: null,
};

/** The text of `PLANS`; what a plan does not mention is unlimited. */
export function plansText(plans: Readonly<Record<string, Partial<Limits>>> = {}): string {
  const whole = Object.entries(plans).map(([name, limits]) => [name, { ...noLimits, ...limits }]);
  return JSON.stringify({ unlimited: noLimits, ...Object.fromEntries(whole) });
}
