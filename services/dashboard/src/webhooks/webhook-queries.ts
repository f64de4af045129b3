import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
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

/** Reads a webhook, not from the cache. */
export function useReadWebhook(webhookId: string): () => Promise<Webhook> {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return () => unwrap(api.GET(onePath, { params: { path } }));
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

/** Changes the given fields of a webhook. The API has no versions of webhooks, and other fields stay as they are. */
export function useUpdateWebhook(webhookId: string) {
  const { api, me } = useKeySession();
  const client = useQueryClient();
  const path = { projectId: me.project.id, webhookId };
  return useMutation({
    mutationFn: (body: UpdateWebhook) => unwrap(api.PATCH(onePath, { params: { path }, body })),
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
    mutationFn: () => unwrap(api.DELETE(onePath, { params: { path } })),
    onSuccess: async () => {
      onDeleted();
      await client.invalidateQueries({ queryKey: ["webhooks"], exact: true });
    },
  });
}

/** Sends a test payload. The result also tells about failures. */
export function useTestWebhook(webhookId: string) {
  const { api, me } = useKeySession();
  const path = { projectId: me.project.id, webhookId };
  return useMutation({
    mutationFn: () => unwrap(api.POST(`${onePath}/test`, { params: { path } })),
  });
}
