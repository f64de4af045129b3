/** The filters of the usage page, which are in the address. */
export type UsageSearch = {
  /** A past month, such as `2027-01`. */
  month?: string | undefined;
  hours?: number | undefined;
  order?: "least" | undefined;
  /** Evaluations in all environments, instead of the chosen one. */
  all?: true | undefined;
};

/** Periods of the traffic of flags, in hours. The first is the default. */
export const trafficHours = [24, 7 * 24, 30 * 24] as const;

export function readUsageSearch(search: Record<string, unknown>): UsageSearch {
  const { month, hours, order, all } = search;
  return {
    month: typeof month === "string" && /^20\d\d-(0[1-9]|1[0-2])$/.test(month) ? month : undefined,
    hours: trafficHours.find((offered) => offered === Number(hours)),
    order: order === "least" ? order : undefined,
    all: all === true || all === "true" ? true : undefined,
  };
}
