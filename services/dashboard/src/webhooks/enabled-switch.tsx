import { useState } from "react";
import { adviceFor, isEditConflict } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Switch } from "../ui/fields.tsx";
import { notify } from "../ui/toasts.tsx";
import { useSeen } from "./changed-webhook.tsx";
import { useUpdateWebhook } from "./webhook-queries.ts";

type EnabledSwitchProps = { webhook: Webhook; isLabelHidden?: boolean };

/** Enables a webhook immediately. Disabling loses events, so it needs a confirmation. */
export function EnabledSwitch({ webhook, isLabelHidden = false }: EnabledSwitchProps) {
  const { reason } = usePermission("change_webhooks");
  const [isAsking, setAsking] = useState(false);
  const { mutate } = useUpdateWebhook(webhook.id);
  const enable = () =>
    mutate(
      { seen: webhook, body: { enabled: true } },
      {
        onSuccess: () => notify({ text: `${webhook.name} is enabled.` }),
        onError: (failure) => notify({ kind: "error", text: failureText(webhook, failure) }),
      },
    );
  return (
    <>
      <Switch
        label={isLabelHidden ? `${webhook.name} is enabled` : "Enabled"}
        isLabelHidden={isLabelHidden}
        isSelected={webhook.enabled}
        whyNot={reason}
        onChange={(isEnabled) => (isEnabled ? enable() : setAsking(true))}
      />
      {isAsking && <DisableDialog webhook={webhook} onClose={() => setAsking(false)} />}
    </>
  );
}

function failureText({ name }: Webhook, failure: Error): string {
  if (isEditConflict(failure))
    return `${name} was not enabled: someone changed it first. The page shows its current settings.`;
  return `${name} was not enabled. ${failure.message} ${adviceFor(failure)}`;
}

function DisableDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { mutate, isPending, error } = useUpdateWebhook(webhook.id);
  const { acknowledge, notice, error: otherError } = useSeen(webhook, error);
  return (
    <ConfirmDialog
      title={`Disable ${webhook.name}?`}
      action="Disable webhook"
      onClose={onClose}
      onConfirm={() =>
        mutate({ seen: acknowledge(), body: { enabled: false } }, { onSuccess: onClose })
      }
      isPending={isPending}
      error={otherError}
    >
      <p>
        Deliveries that have not ended are cancelled. The receiver gets no events until the webhook
        is enabled again, and misses those in between.
      </p>
      {notice}
    </ConfirmDialog>
  );
}
