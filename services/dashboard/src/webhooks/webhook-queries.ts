import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { isEditConflict } from "../api/problem.ts";
import type { CreateWebhook, UpdateWebhook, Webhook } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";

const list = "/api/v1/projects/{projectId}/webhooks";
export const onePath = `${list}/{webhookId}` as const;

export function useWebhooks() {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id };
  return useQuery({
    queryKey: ["webhooks"],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET(list, { params: { path }, signal }))).webhooks,
  });
}

export function useWebhook(webhookId: string) {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return useQuery({
    queryKey: ["webhooks", webhookId],
    queryFn: ({ signal }) => unwrap(api.GET(onePath, { params: { path }, signal })),
  });
}

export function useCreateWebhook() {
  const { api, me } = useKeySession();
  const client = useQueryClient();
  const sendOnce = useSendOnce();
  const path = { projectId: me.project.id };
  return useMutation({
    mutationFn: (body: CreateWebhook) =>
      sendOnce(body, (header) => unwrap(api.POST(list, { params: { path, header }, body }))),
    onSuccess: () => client.invalidateQueries({ queryKey: ["webhooks"] }),
    // The cache would keep the secret after the dialog.
    gcTime: 0,
  });
}

export type WebhookChange = {
  /** The webhook as the person saw it. Another version is not changed. */
  seen: Webhook;
  body: UpdateWebhook;
  /** Returns the body for another version, or undefined if the person must decide. */
  rebase?: (current: Webhook) => UpdateWebhook | undefined;
};

const onlyIf = ({ version }: Webhook) => ({ "If-Match": `"${version}"` });

/** Refetches the webhooks after a conflict. */
async function refreshOnConflict(error: unknown, client: QueryClient): Promise<void> {
  if (isEditConflict(error)) await client.invalidateQueries({ queryKey: ["webhooks"] });
}

/** Changes the given fields of a webhook, if it still has the version that the person saw. */
export function useUpdateWebhook(webhookId: string) {
  const { api, me } = useKeySession();
  const client = useQueryClient();
  const path = { projectId: me.project.id, webhookId };
  const patch = (seen: Webhook, body: UpdateWebhook) =>
    unwrap(api.PATCH(onePath, { params: { path, header: onlyIf(seen) }, body }));
  return useMutation({
    mutationFn: async ({ seen, body, rebase }: WebhookChange) => {
      try {
        return await patch(seen, body);
      } catch (error) {
        if (rebase === undefined || !isEditConflict(error)) throw error;
        const current = await unwrap(api.GET(onePath, { params: { path } }));
        const rebased = rebase(current);
        if (rebased === undefined) throw error;
        return await patch(current, rebased);
      }
    },
    onError: (error) => refreshOnConflict(error, client),
    onSuccess: async (webhook) => {
      client.setQueryData(["webhooks", webhookId], webhook);
      await client.invalidateQueries({ queryKey: ["webhooks"], exact: true });
      // Disabling a webhook cancels deliveries.
      await client.invalidateQueries({ queryKey: ["deliveries", webhookId] });
    },
    // The cache would keep a secret after the dialog.
    gcTime: 0,
  });
}

/** `onDeleted` is called even if the page of the webhook is gone before the response. */
export function useDeleteWebhook(webhookId: string, onDeleted: () => void) {
  const { api, me } = useKeySession();
  const client = useQueryClient();
  const path = { projectId: me.project.id, webhookId };
  return useMutation({
    mutationFn: (seen: Webhook) =>
      unwrap(api.DELETE(onePath, { params: { path, header: onlyIf(seen) } })),
    onError: (error) => refreshOnConflict(error, client),
    onSuccess: async () => {
      onDeleted();
      await client.invalidateQueries({ queryKey: ["webhooks"], exact: true });
    },
  });
}

/** Time after which the audit log is read again while it does not have the change yet. */
const auditLagMs = 2_000;

/** Reads the changes of a webhook since the person saw it, the newest first, to say who made them. */
export function useChangesSince(seen: Webhook) {
  const { api, me } = useKeySession();
  const query = { action: "webhook_changed" as const, since: seen.updated_at };
  const { data } = useQuery({
    queryKey: ["changes", query],
    queryFn: async ({ signal }) => {
      const params = { path: { projectId: me.project.id }, query };
      const { changes } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/changes", { params, signal }),
      );
      const sinceMs = Date.parse(seen.updated_at);
      return changes.filter(
        (change) => change.webhook_id === seen.id && Date.parse(change.changed_at) > sinceMs,
      );
    },
    refetchInterval: ({ state }) => (state.data?.length === 0 ? auditLagMs : false),
  });
  return data ?? [];
}

/** Sends a test payload. A failed delivery is a result, not an error. */
export function useTestWebhook(webhookId: string) {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return useMutation({
    mutationFn: () => unwrap(api.POST(`${onePath}/test`, { params: { path } })),
  });
}
