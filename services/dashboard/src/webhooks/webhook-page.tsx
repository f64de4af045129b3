import { useNavigate, useParams } from "@tanstack/react-router";
import { Pencil, SearchX, Trash2 } from "lucide-react";
import { useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { Button, ButtonLink } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Page } from "../ui/page.tsx";
import { Card, EmptyState, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import { useSeen } from "./changed-webhook.tsx";
import { Deliveries } from "./deliveries.tsx";
import { EditWebhookDialog } from "./edit-webhook-dialog.tsx";
import { EnabledSwitch } from "./enabled-switch.tsx";
import { SecretActions } from "./secret-actions.tsx";
import { TestWebhook } from "./test-webhook.tsx";
import { Events } from "./webhook-list.tsx";
import { useDeleteWebhook, useWebhook } from "./webhook-queries.ts";
import styles from "./webhooks.module.css";
import { ForWebhooks } from "./webhooks-page.tsx";

/** A webhook: its settings, its secret, a test, and its deliveries. */
export function WebhookPage() {
  const { webhookId } = useParams({ from: "/webhooks/$webhookId" });
  return (
    <ForWebhooks>
      <FoundWebhook key={webhookId} webhookId={webhookId} />
    </ForWebhooks>
  );
}

function FoundWebhook({ webhookId }: { webhookId: string }) {
  const query = useWebhook(webhookId);
  const { error } = query;
  // The API rejects an id that is not a UUID with 400.
  if (error instanceof ApiProblem && (error.status === 404 || error.status === 400))
    return <MissingWebhook />;
  return (
    <QueryView query={query} label="Loading the webhook">
      {(webhook) => <LoadedWebhook webhook={webhook} />}
    </QueryView>
  );
}

function LoadedWebhook({ webhook }: { webhook: Webhook }) {
  const { reason } = usePermission("change_webhooks");
  const [isEditing, setEditing] = useState(false);
  return (
    <Page
      title={webhook.name}
      back={{ link: { to: "/webhooks" }, label: "Webhooks" }}
      actions={
        <>
          <DeleteButton webhook={webhook} />
          <Button onPress={() => setEditing(true)} whyNot={reason}>
            <Pencil size={16} aria-hidden /> Edit
          </Button>
        </>
      }
    >
      {!webhook.enabled && (
        <Warning>
          This webhook is disabled, and the receiver gets no events. If every attempt of a delivery
          gets status 410, Halyard disables the webhook itself.
        </Warning>
      )}
      <Settings webhook={webhook} />
      <TestWebhook webhookId={webhook.id} />
      <Deliveries webhookId={webhook.id} />
      {isEditing && <EditWebhookDialog webhook={webhook} onClose={() => setEditing(false)} />}
    </Page>
  );
}

function Settings({ webhook }: { webhook: Webhook }) {
  return (
    <Card title="Settings" actions={<EnabledSwitch webhook={webhook} />}>
      <dl className={styles.facts}>
        <dt>URL</dt>
        <dd className={styles.fact}>
          <code className={styles.url}>{webhook.url}</code>
          <CopyButton text={webhook.url} label="Copy the URL" />
        </dd>
        <dt>Events</dt>
        <dd className={styles.fact}>
          <Events all={webhook.events} />
        </dd>
        <dt>Secret</dt>
        <dd className={styles.fact}>
          <SecretActions webhook={webhook} />
        </dd>
      </dl>
    </Card>
  );
}

function DeleteButton({ webhook }: { webhook: Webhook }) {
  const { reason } = usePermission("change_webhooks");
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button onPress={() => setAsking(true)} whyNot={reason}>
        <Trash2 size={16} aria-hidden /> Delete
      </Button>
      {isAsking && <DeleteDialog webhook={webhook} onClose={() => setAsking(false)} />}
    </>
  );
}

function DeleteDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const navigate = useNavigate();
  const {
    mutate,
    isPending,
    error: failure,
  } = useDeleteWebhook(webhook.id, () => {
    notify({ text: `${webhook.name} is deleted.` });
    void navigate({ to: "/webhooks" });
  });
  const { acknowledge, notice, error } = useSeen(webhook, failure);
  return (
    <ConfirmDialog
      title={`Delete ${webhook.name}?`}
      action="Delete webhook"
      typed={{ label: "Type the name of the webhook", text: webhook.name }}
      onClose={onClose}
      onConfirm={() => mutate(acknowledge())}
      isPending={isPending}
      error={error}
    >
      <p>
        Deliveries that have not ended are cancelled, and all deliveries become unreadable. This
        cannot be undone.
      </p>
      {notice}
    </ConfirmDialog>
  );
}

function MissingWebhook() {
  return (
    <Page title="No such webhook">
      <EmptyState
        icon={SearchX}
        title="This webhook does not exist"
        action={<ButtonLink to="/webhooks">All webhooks</ButtonLink>}
      >
        It may have been deleted, or it belongs to another project.
      </EmptyState>
    </Page>
  );
}
