import { useState } from "react";
import { adviceFor } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Switch } from "../ui/fields.tsx";
import { notify } from "../ui/toasts.tsx";
import { useUpdateWebhook } from "./webhook-queries.ts";

/** Enables a webhook at once. Disabling it loses events, so it asks first. */
export function EnabledSwitch({
  webhook,
  isLabelHidden = false,
}: {
  webhook: Webhook;
  isLabelHidden?: boolean;
}) {
  const [isAsking, setAsking] = useState(false);
  const { mutate, isPending, error, reset } = useUpdateWebhook(webhook.id);
  const enable = () =>
    mutate(
      { enabled: true },
      {
        onSuccess: () => notify({ text: `${webhook.name} is enabled.` }),
        onError: (failure) =>
          notify({
            kind: "error",
            text: `${webhook.name} was not enabled. ${failure.message} ${adviceFor(failure)}`,
          }),
      },
    );
  const disable = () => mutate({ enabled: false }, { onSuccess: () => setAsking(false) });
  return (
    <>
      <Switch
        label={isLabelHidden ? `${webhook.name} is enabled` : "Enabled"}
        isLabelHidden={isLabelHidden}
        isSelected={webhook.enabled}
        onChange={(isEnabled) => (isEnabled ? enable() : setAsking(true))}
      />
      <ConfirmDialog
        title={`Disable ${webhook.name}?`}
        action="Disable webhook"
        isOpen={isAsking}
        onClose={() => {
          reset();
          setAsking(false);
        }}
        onConfirm={disable}
        isPending={isPending}
        error={error}
      >
        <p>
          Deliveries that have not ended are cancelled. The receiver gets no events until the
          webhook is enabled again, and misses those in between.
        </p>
      </ConfirmDialog>
    </>
  );
}
