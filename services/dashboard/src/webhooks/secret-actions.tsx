import { useState } from "react";
import type { Webhook } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { type Option, Select } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useAskedClose, useUnsaved } from "../ui/leave-guard.ts";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import { useSeen } from "./changed-webhook.tsx";
import { chosenSecret, SecretFields, useSecretChoice } from "./secret-choice.tsx";
import { useUpdateWebhook } from "./webhook-queries.ts";
import { fieldProblem } from "./webhook-texts.ts";
import styles from "./webhooks.module.css";

/** Says whether deliveries are signed, and sets, rotates or removes the secret. */
export function SecretActions({ webhook }: { webhook: Webhook }) {
  const [open, setOpen] = useState<"set" | "remove">();
  const [generated, setGenerated] = useState<string>();
  const { reason } = usePermission("change_webhooks");
  const close = () => setOpen(undefined);
  const askAndClose = useAskedClose(close);
  const saved = (secret: string | undefined) => {
    notify({ text: `Deliveries of ${webhook.name} are signed with the new secret.` });
    close();
    setGenerated(secret);
  };
  const title = webhook.has_secret ? "Rotate the secret" : "Set a secret";
  return (
    <>
      {webhook.has_secret ? (
        <span>Deliveries are signed. The secret cannot be shown.</span>
      ) : (
        <Badge tone="warning">Deliveries are not signed</Badge>
      )}
      <Button size="small" onPress={() => setOpen("set")} whyNot={reason}>
        {title}
      </Button>
      {webhook.has_secret && (
        <Button size="small" onPress={() => setOpen("remove")} whyNot={reason}>
          Remove the secret
        </Button>
      )}
      {open === "set" && (
        <SecretForm title={title} webhook={webhook} onClose={askAndClose} onSaved={saved} />
      )}
      {generated !== undefined && (
        <SecretDialog
          title={`The new secret of ${webhook.name}`}
          kind="secret"
          onClose={() => setGenerated(undefined)}
        >
          <p>Give it to the receiver now: Halyard does not show it again.</p>
          <CodeBlock title="Secret" code={generated} />
        </SecretDialog>
      )}
      {open === "remove" && <RemoveSecret webhook={webhook} onClose={close} />}
    </>
  );
}

type Overlap = "0" | "3600" | "86400" | "604800";
const overlaps: readonly Option<Overlap>[] = [
  { value: "0", label: "None", note: "the previous secret ends at once" },
  { value: "3600", label: "1 hour" },
  { value: "86400", label: "1 day" },
  { value: "604800", label: "7 days", note: "the maximum" },
];

type SecretFormProps = {
  title: string;
  webhook: Webhook;
  onClose: () => void;
  /** Receives the secret if it was generated. */
  onSaved: (generated: string | undefined) => void;
};

/** Sets the secret. It shows a generated secret before saving, because some receivers need it before the rotation. */
function SecretForm({ title, webhook, onClose, onSaved }: SecretFormProps) {
  const choice = useSecretChoice();
  const [overlap, setOverlap] = useState<Overlap>("86400");
  const { mutate, isPending, mayBeSaved, error: failure } = useUpdateWebhook(webhook.id);
  const { seen, acknowledge, notice, error } = useSeen(webhook, failure);
  const isRotation = seen.has_secret;
  const problem = fieldProblem(error);
  const isGenerated = choice.kind === "generated";
  useUnsaved((isPending || mayBeSaved) && isGenerated, "secret");
  const secret = chosenSecret(choice) ?? "";
  const submit = () => {
    mutate(
      {
        seen: acknowledge(),
        body: { secret, ...(isRotation && { secret_overlap_seconds: Number(overlap) }) },
      },
      { onSuccess: () => onSaved(isGenerated ? secret : undefined) },
    );
  };
  return (
    <FormDialog
      title={title}
      action={isRotation ? "Rotate the secret" : "Set the secret"}
      onClose={onClose}
      onSubmit={submit}
      isPending={isPending}
      isComplete={secret !== ""}
      error={problem === undefined ? error : null}
    >
      <SecretFields
        choice={choice}
        error={problem?.field === "secret" ? problem.text : undefined}
        isShown
      />
      {isRotation && (
        <>
          <Select
            label="The previous secret stays valid for"
            value={overlap}
            onChange={setOverlap}
            options={overlaps}
          />
          <RotationSteps hasOverlap={overlap !== "0"} />
        </>
      )}
      {notice}
    </FormDialog>
  );
}

/** The steps for the receiver, which depend on the signature that it verifies. */
function RotationSteps({ hasOverlap }: { hasOverlap: boolean }) {
  return (
    <div className={styles.steps}>
      <h3>What the receiver must do</h3>
      <ul>
        <li>
          <strong>
            If it verifies <code>webhook-signature</code>
          </strong>{" "}
          (Standard Webhooks):{" "}
          {hasOverlap
            ? "give it the new secret before this time ends. Until then every delivery has a signature with each secret."
            : "give it the new secret right after you rotate. It rejects deliveries in between, and Halyard sends those again later."}
        </li>
        <li>
          <strong>
            If it verifies <code>X-Service-Signature</code>
          </strong>
          : let it accept both secrets before you rotate. This header is signed with the new secret
          only.
        </li>
      </ul>
    </div>
  );
}

function RemoveSecret({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { mutate, isPending, error: failure } = useUpdateWebhook(webhook.id);
  const { acknowledge, notice, error } = useSeen(webhook, failure);
  return (
    <ConfirmDialog
      title={`Remove the secret of ${webhook.name}?`}
      action="Remove the secret"
      onClose={onClose}
      onConfirm={() =>
        mutate({ seen: acknowledge(), body: { secret: null } }, { onSuccess: onClose })
      }
      isPending={isPending}
      error={error}
    >
      <p>
        Deliveries have no signature from now on. A receiver that verifies signatures rejects them.
      </p>
      {notice}
    </ConfirmDialog>
  );
}
