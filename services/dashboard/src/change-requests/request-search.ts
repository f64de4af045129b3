import type { ChangeRequestStatus, ListedChangeRequest } from "../api/schema.d.ts";

/** The filter of the list by status, with the statuses that the API has for it. */
export const statusFilters = {
  pending: { label: "Pending", statuses: ["open", "approved", "stale"] },
  drafts: { label: "Drafts", statuses: ["draft"] },
  stale: { label: "Stale", statuses: ["stale"] },
  applied: { label: "Applied", statuses: ["applied"] },
  rejected: { label: "Rejected", statuses: ["rejected"] },
  withdrawn: { label: "Withdrawn", statuses: ["withdrawn"] },
  all: {
    label: "All",
    statuses: ["open", "approved", "stale", "applied", "rejected", "withdrawn"],
  },
} as const satisfies Record<string, { label: string; statuses: readonly ChangeRequestStatus[] }>;
export type StatusFilter = keyof typeof statusFilters;

/** The filters, which are in the address. Absent: the pending requests of everybody. */
export type RequestSearch = { status?: StatusFilter | undefined; own?: true | undefined };

export function readRequestSearch({ status, own }: Record<string, unknown>): RequestSearch {
  const known = typeof status === "string" && Object.hasOwn(statusFilters, status);
  return {
    status: known ? (status as StatusFilter) : undefined,
    own: own === true ? true : undefined,
  };
}

type Listed = Pick<ListedChangeRequest, "id" | "created_by">;

/** Returns the requests that match a filter, first those that the reader may approve. */
export function listedRequests<Request extends Listed>(
  requests: readonly Request[],
  { own }: RequestSearch,
  { userId, mayApprove }: { userId: string; mayApprove: (request: Request) => boolean },
): Request[] {
  const found = requests.filter((request) => own !== true || request.created_by === userId);
  const { true: first = [], false: others = [] } = Object.groupBy(found, (request) =>
    mayApprove(request) ? "true" : "false",
  );
  return [...first, ...others];
}
