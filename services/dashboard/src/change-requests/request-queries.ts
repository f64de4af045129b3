import {
  type QueryClient,
  useInfiniteQuery,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { AuditedChange, ChangeRequest, UpdateChangeRequest } from "../api/schema.d.ts";
import { readChanges } from "../changes/read-changes.ts";
import { useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { protectedAmong } from "../state/protection.ts";
import { type StatusFilter, statusFilters } from "./request-search.ts";

const listRoute = "/api/v1/change-requests";
const oneRoute = `${listRoute}/{requestId}` as const;

/** The live changes mark all queries of this key as stale. */
const requestsKey = ["change-requests"];
const requestKey = (id: string) => [...requestsKey, "one", id];

/** Reads the change requests with a status, the newest first. */
export function useRequests(filter: StatusFilter) {
  const { api } = useKeySession();
  return useInfiniteQuery({
    queryKey: [...requestsKey, "list", filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: before, signal }) => {
      const status = statusFilters[filter].statuses.join(",");
      const query = { status, ...(before !== undefined && { before }) };
      return unwrap(api.GET(listRoute, { params: { query }, signal }));
    },
    getNextPageParam: ({ next_before: next }) => next ?? undefined,
  });
}

/** Reads the number of open and approved requests. Projects without protected environments have none. */
export function usePendingCount(): number {
  const isWanted = protectedAmong(useKeySession().me.environments) !== undefined;
  const { data = 0 } = useKeyQuery(
    [...requestsKey, "count"],
    async ({ api }, signal) => {
      const query = { status: "open", limit: 1 };
      const { pending } = await unwrap(api.GET(listRoute, { params: { query }, signal }));
      return pending.open + pending.approved;
    },
    { enabled: isWanted },
  );
  return isWanted ? data : 0;
}

export const useRequest = (id: string) =>
  useKeyQuery(requestKey(id), ({ api }, signal) =>
    unwrap(api.GET(oneRoute, { params: { path: { requestId: id } }, signal })),
  );

/** A step of a change request. */
export type Step =
  | { kind: "open" | "withdraw" | "rebase" | "apply" }
  | { kind: "approve"; content_hash: string }
  | { kind: "reject"; comment: string }
  | { kind: "bypass"; reason: string }
  | { kind: "edit"; body: Omit<UpdateChangeRequest, "changes"> };

function send(api: Api, id: string, step: Step): Promise<ChangeRequest> {
  const params = { path: { requestId: id } };
  switch (step.kind) {
    case "open":
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/open`, { params }));
    case "withdraw":
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/withdraw`, { params }));
    case "rebase":
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/rebase`, { params }));
    case "apply":
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/apply`, { params }));
    case "approve": {
      const { content_hash } = step;
      return unwrap<ChangeRequest>(
        api.POST(`${oneRoute}/approve`, { params, body: { content_hash } }),
      );
    }
    case "reject": {
      const body = step.comment === "" ? {} : { comment: step.comment };
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/reject`, { params, body }));
    }
    case "bypass": {
      const { reason } = step;
      return unwrap<ChangeRequest>(api.POST(`${oneRoute}/bypass`, { params, body: { reason } }));
    }
    case "edit":
      return unwrap<ChangeRequest>(api.PATCH(oneRoute, { params, body: step.body }));
  }
}

/** Takes a step, and reads everything again that depends on it, also without a live connection. */
export function useStep(id: string, onDone: (request: ChangeRequest, step: Step) => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: (step: Step) => send(api, id, step),
    onSuccess: (request, step) => {
      client.setQueryData(requestKey(id), request);
      onDone(request, step);
    },
    onSettled: (_request, _error, { kind }) => refresh(client, kind),
  });
}

async function refresh(client: QueryClient, kind: Step["kind"]): Promise<void> {
  const isApplied = kind === "apply" || kind === "bypass";
  const changed = isApplied ? [["flags"], ["flag"], ["audiences"], ["changes"]] : [["changes"]];
  await Promise.all(
    [requestsKey, ...changed].map((queryKey) => client.invalidateQueries({ queryKey })),
  );
}

/** Entries of the audit log in which those of a request are looked up. */
const maxEntries = 200;

/** Reads what happened to a request: its steps, and the changes that it made. */
export const useRequestLog = ({ id, created_at: since }: ChangeRequest) =>
  useKeyQuery(["changes", "of request", id], async (session, signal) => {
    const { changes } = await readChanges(session, { since, limit: maxEntries }, signal);
    return changes.filter((change) => isOfRequest(change, id));
  });

const isOfRequest = ({ after, cause_id: cause }: AuditedChange, id: string): boolean =>
  after?.change_request === id || cause === id;
