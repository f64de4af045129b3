import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { isUnconfirmed } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useAskedClose, useUnsaved } from "../ui/leave-guard.ts";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { chosenSecret, SecretFields, useSecretChoice } from "./secret-choice.tsx";
import { isComplete, type WebhookDraft, WebhookFields } from "./webhook-fields.tsx";
import { useCreateWebhook } from "./webhook-queries.ts";
import { eventNames, fieldProblem, receiverSnippet } from "./webhook-texts.ts";

/** Creates a webhook, shows a generated secret once, and opens the webhook's page. */
export function CreateWebhookDialog({ onClose }: { onClose: () => void }) {
  const [created, setCreated] = useState<{ webhook: Webhook; secret: string }>();
  const navigate = useNavigate();
  const open = async ({ id }: Webhook) => {
    onClose();
    await navigate({ to: "/webhooks/$webhookId", params: { webhookId: id } });
  };
  const askAndClose = useAskedClose(onClose);
  if (created !== undefined)
    return <NewSecret {...created} onClose={() => void open(created.webhook)} />;
  return (
    <CreateWebhookForm
      onCancel={askAndClose}
      onCreated={(webhook, secret) =>
        secret === undefined ? void open(webhook) : setCreated({ webhook, secret })
      }
    />
  );
}

type CreateWebhookFormProps = {
  onCancel: () => void;
  /** Receives the secret if it was generated. */
  onCreated: (webhook: Webhook, generated: string | undefined) => void;
};

function CreateWebhookForm({ onCancel, onCreated }: CreateWebhookFormProps) {
  const [draft, setDraft] = useState<WebhookDraft>({
    name: "",
    url: "",
    events: eventNames,
    trace_context: false,
  });
  const choice = useSecretChoice();
  const { mutate, isPending, error } = useCreateWebhook();
  useUnsaved((isPending || isUnconfirmed(error)) && choice.kind === "generated", "secret");
  const problem = fieldProblem(error);
  const secret = chosenSecret(choice);
  const isShown = problem !== undefined && (problem.field !== "secret" || choice.kind === "own");
  const submit = () => {
    mutate(
      {
        name: draft.name.trim(),
        url: draft.url.trim(),
        events: [...draft.events],
        trace_context: draft.trace_context,
        secret,
      },
      {
        onSuccess: (webhook) =>
          onCreated(webhook, choice.kind === "generated" ? choice.generated : undefined),
      },
    );
  };
  return (
    <FormDialog
      title="Create a webhook"
      action="Create webhook"
      onClose={onCancel}
      onSubmit={submit}
      isPending={isPending}
      isComplete={isComplete(draft) && secret !== ""}
      error={isShown ? null : error}
    >
      <WebhookFields
        draft={draft}
        onChange={(changed) => setDraft({ ...draft, ...changed })}
        problem={problem}
      />
      <SecretFields
        choice={choice}
        error={problem?.field === "secret" ? problem.text : undefined}
        isOptional
      />
    </FormDialog>
  );
}

type NewSecretProps = { webhook: Webhook; secret: string; onClose: () => void };

function NewSecret({ webhook, secret, onClose }: NewSecretProps) {
  return (
    <SecretDialog title="Copy the secret" kind="secret" wide onClose={onClose}>
      <p>
        The webhook <bdi>{webhook.name}</bdi> is created. Give its secret to the receiver now:
        Halyard does not show it again.
      </p>
      <CodeBlock title="Secret" code={secret} wraps />
      <CodeBlock title="A receiver that verifies it" code={receiverSnippet} />
    </SecretDialog>
  );
}
