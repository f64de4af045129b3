import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Webhook } from "../api/schema.d.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { DialogForm } from "../ui/form-dialog.tsx";
import { chosenSecret, SecretFields, useSecretChoice } from "./secret-choice.tsx";
import { isComplete, type WebhookDraft, WebhookFields } from "./webhook-fields.tsx";
import { useCreateWebhook } from "./webhook-queries.ts";
import { eventTexts, fieldProblem, receiverSnippet } from "./webhook-texts.ts";

/** Creates a webhook, shows a generated secret once, and opens the webhook's page. */
export function CreateWebhookDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [created, setCreated] = useState<{ webhook: Webhook; secret: string }>();
  const navigate = useNavigate();
  const open = async ({ id }: Webhook) => {
    close();
    await navigate({ to: `/webhooks/${id}` as "/" });
  };
  function close() {
    setCreated(undefined);
    onClose();
  }
  return (
    <Dialog
      title={created === undefined ? "Create a webhook" : "Copy the secret"}
      isOpen={isOpen}
      onClose={close}
      isDismissable={created === undefined}
      wide={created !== undefined}
    >
      {created === undefined ? (
        <CreateWebhookForm
          onCancel={close}
          onCreated={(webhook, secret) =>
            secret === undefined ? void open(webhook) : setCreated({ webhook, secret })
          }
        />
      ) : (
        <NewSecret {...created} onDone={() => void open(created.webhook)} />
      )}
    </Dialog>
  );
}

function CreateWebhookForm({
  onCancel,
  onCreated,
}: {
  onCancel: () => void;
  /** Receives the secret if it was generated. */
  onCreated: (webhook: Webhook, generated: string | undefined) => void;
}) {
  const [draft, setDraft] = useState<WebhookDraft>({
    name: "",
    url: "",
    events: eventTexts.map(({ name }) => name),
  });
  const choice = useSecretChoice();
  const { mutate, isPending, error } = useCreateWebhook();
  const problem = fieldProblem(error);
  const secret = chosenSecret(choice);
  const isShown = problem !== undefined && (problem.field !== "secret" || choice.kind === "own");
  const submit = () => {
    mutate(
      { name: draft.name.trim(), url: draft.url.trim(), events: [...draft.events], secret },
      {
        onSuccess: (webhook) =>
          onCreated(webhook, choice.kind === "generated" ? choice.generated : undefined),
      },
    );
  };
  return (
    <DialogForm
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
    </DialogForm>
  );
}

function NewSecret({
  webhook,
  secret,
  onDone,
}: {
  webhook: Webhook;
  secret: string;
  onDone: () => void;
}) {
  return (
    <>
      <p>
        The webhook {webhook.name} is created. Give its secret to the receiver now: Halyard does not
        show it again.
      </p>
      <CodeBlock title="Secret" code={secret} wraps />
      <CodeBlock title="A receiver that verifies it" code={receiverSnippet} />
      <DialogActions>
        <Button variant="primary" onPress={onDone} autoFocus>
          I have copied the secret
        </Button>
      </DialogActions>
    </>
  );
}
