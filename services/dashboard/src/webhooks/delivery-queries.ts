import {
  type InfiniteData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import type { Delivery, DeliveryStatus } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { nextReading } from "./delivery-status.ts";
import type { RedeliverySource } from "./redeliver-failed.ts";
import { onePath } from "./webhook-queries.ts";

const listPath = `${onePath}/deliveries` as const;
const pageSize = 25;
/** Number of deliveries in the summary of a webhook. */
const recentCount = 10;

type Page = { deliveries: Delivery[]; next_cursor: string | null };

/** Reads the deliveries of a webhook from the newest on. They are read again while some have not ended. */
export function useDeliveries(webhookId: string, status: DeliveryStatus | undefined) {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return useInfiniteQuery({
    queryKey: ["deliveries", webhookId, "list", status ?? "all"],
    queryFn: ({ pageParam, signal }): Promise<Page> => {
      const query = { limit: pageSize, ...(status && { status }), ...pageParam };
      return unwrap(api.GET(listPath, { params: { path, query }, signal }));
    },
    initialPageParam: {} as { cursor?: string },
    getNextPageParam: ({ next_cursor: cursor }) => (cursor === null ? undefined : { cursor }),
    refetchInterval: ({ state }) => intervalOf(state.data),
  });
}

/** Every page is read again, so more pages are read less often. */
function intervalOf(data: InfiniteData<Page> | undefined): number | false {
  if (data === undefined) return false;
  const wait = nextReading(
    data.pages.flatMap(({ deliveries }) => deliveries),
    Date.now(),
  );
  return wait === undefined ? false : wait * data.pages.length;
}

export const useRecentDeliveries = (webhookId: string) =>
  useKeyQuery(["deliveries", webhookId, "recent"], async ({ api, me }, signal) => {
    const path = { projectId: me.project.id, webhookId };
    const params = { path, query: { limit: recentCount } };
    return (await unwrap(api.GET(listPath, { params, signal }))).deliveries;
  });

/** Reads a delivery with its payload and attempts, again while it has not ended. */
export function useDelivery({ webhook_id: webhookId, id: deliveryId }: Delivery) {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId, deliveryId };
  return useQuery({
    queryKey: ["deliveries", webhookId, "one", deliveryId],
    queryFn: ({ signal }) =>
      unwrap(api.GET(`${listPath}/{deliveryId}`, { params: { path }, signal })),
    refetchInterval: ({ state: { data } }) =>
      (data !== undefined && nextReading([data], Date.now())) || false,
  });
}

export function useRedeliver(webhookId: string) {
  const source = useRedeliverySource(webhookId);
  const client = useQueryClient();
  return useMutation({
    mutationFn: source.redeliver,
    onSettled: () => client.invalidateQueries({ queryKey: ["deliveries", webhookId] }),
  });
}

/** Deliveries per request while all failed ones are redelivered. */
const failedPageSize = 500;

export function useRedeliverySource(webhookId: string): RedeliverySource {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return {
    readFailed: (cursor) => {
      const query = { status: "failed" as const, limit: failedPageSize, ...(cursor && { cursor }) };
      return unwrap(api.GET(listPath, { params: { path, query } }));
    },
    redeliver: (deliveryId: string) =>
      unwrap(
        api.POST(`${listPath}/{deliveryId}/redeliver`, {
          params: { path: { ...path, deliveryId } },
        }),
      ),
  };
}
