import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { isEditConflict, isUnconfirmed } from "../api/problem.ts";
import type { AuditedChange, CreateWebhook, UpdateWebhook, Webhook } from "../api/schema.d.ts";
import { readChanges } from "../changes/read-changes.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";

const list = "/api/v1/projects/{projectId}/webhooks";
export const onePath = `${list}/{webhookId}` as const;

export async function readWebhooks({ api, me }: KeySession, signal: AbortSignal) {
  const params = { path: { projectId: me.project.id } };
  return (await unwrap(api.GET(list, { params, signal }))).webhooks;
}

export const useWebhooks = () => useKeyQuery(["webhooks"], readWebhooks);

export const useWebhook = (webhookId: string) =>
  useKeyQuery(["webhooks", webhookId], ({ api, me }, signal) => {
    const path = { projectId: me.project.id, webhookId };
    return unwrap(api.GET(onePath, { params: { path }, signal }));
  });

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

type WebhookChange = {
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

/**
 * Changes the given fields of a webhook, if it still has the version that the person saw. After a lost response, the
 * webhook may have the next version because of the lost request. A repetition then applies to that version.
 */
export function useUpdateWebhook(webhookId: string) {
  const session = useKeySession();
  const { api, me } = session;
  const [mayBeSaved, setMayBeSaved] = useState(false);
  const client = useQueryClient();
  const path = { projectId: me.project.id, webhookId };
  const patch = (seen: Webhook, body: UpdateWebhook) =>
    unwrap(api.PATCH(onePath, { params: { path, header: onlyIf(seen) }, body }));
  const mutation = useMutation({
    mutationFn: async ({ seen, body, rebase }: WebhookChange) => {
      try {
        return await patch(seen, body);
      } catch (error) {
        if (!isEditConflict(error)) throw error;
        const current = await unwrap(api.GET(onePath, { params: { path } }));
        const isRepetition = mayBeSaved && (await isOwnChange(session, seen, current));
        const next = isRepetition ? body : rebase?.(current);
        if (next === undefined) throw error;
        return await patch(current, next);
      }
    },
    onError: (error) => {
      if (isUnconfirmed(error)) setMayBeSaved(true);
      return refreshOnConflict(error, client);
    },
    onSuccess: async (webhook) => {
      setMayBeSaved(false);
      client.setQueryData(["webhooks", webhookId], webhook);
      await client.invalidateQueries({ queryKey: ["webhooks"], exact: true });
      // Disabling a webhook cancels deliveries.
      await client.invalidateQueries({ queryKey: ["deliveries", webhookId] });
    },
    // The cache would keep a secret after the dialog.
    gcTime: 0,
  });
  return { ...mutation, mayBeSaved };
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
const maxAuditReads = 5;

/** Reads the changes of a webhook since the person saw it, the newest first. */
async function readChangesSince(
  session: KeySession,
  seen: Webhook,
): Promise<readonly AuditedChange[]> {
  const query = { action: "webhook_changed" as const, since: seen.updated_at };
  const { changes } = await readChanges(session, query);
  const sinceMs = Date.parse(seen.updated_at);
  return changes.filter(
    (change) => change.webhook_id === seen.id && Date.parse(change.changed_at) > sinceMs,
  );
}

/** Returns whether the signed-in person made the only change since `seen`. */
async function isOwnChange(session: KeySession, seen: Webhook, current: Webhook): Promise<boolean> {
  if (current.version !== seen.version + 1) return false;
  for (let read = 1; read <= maxAuditReads; read++) {
    const [change] = await readChangesSince(session, seen);
    if (change !== undefined) return change.actor.id === session.me.user.id;
    await new Promise((resolve) => setTimeout(resolve, auditLagMs));
  }
  return false;
}

/** Reads the changes of a webhook since the person saw it, to say who made them. */
export function useChangesSince(seen: Webhook) {
  const queryKey = ["changes", "webhook", seen.id, seen.updated_at];
  const { data } = useKeyQuery(queryKey, (session) => readChangesSince(session, seen), {
    refetchInterval: ({ state }) =>
      state.data?.length === 0 && state.dataUpdateCount < maxAuditReads ? auditLagMs : false,
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
