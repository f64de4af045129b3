import { useState } from "react";
import type { UpdateWebhook, Webhook } from "../api/schema.d.ts";
import { Button } from "../ui/button.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import { ChangedWebhook, useSeen } from "./changed-webhook.tsx";
import { changedFields, conflictsOf, withoutConflicts } from "./webhook-edits.ts";
import { isComplete, WebhookFields } from "./webhook-fields.tsx";
import { useUpdateWebhook } from "./webhook-queries.ts";
import { fieldProblem } from "./webhook-texts.ts";

type EditWebhookDialogProps = { webhook: Webhook; onClose: () => void };

/**
 * Sends the edited fields with the version that the dialog shows. If another person has changed other fields, both
 * changes are kept. If it was the same field, the person decides.
 */
function useSave(webhook: Webhook, onClose: () => void) {
  const [draft, setDraft] = useState<UpdateWebhook>({});
  const { mutate, reset, isPending, error: failure } = useUpdateWebhook(webhook.id);
  const { seen, acknowledge, outdated, error } = useSeen(webhook, failure);
  const rebase = (current: Webhook) =>
    conflictsOf({ seen, draft, current }).length > 0 ? undefined : changedFields(draft, current);
  const saved = ({ name }: Webhook) => {
    notify({ text: `${name} is saved.` });
    onClose();
  };
  return {
    fields: { ...seen, ...draft },
    change: (changed: UpdateWebhook) => setDraft({ ...draft, ...changed }),
    outdated,
    takeTheirs: (before: Webhook) => {
      setDraft(withoutConflicts({ seen: before, draft, current: acknowledge() }));
      reset();
    },
    save: () => {
      mutate(
        { seen: acknowledge(), body: changedFields(draft, seen), rebase },
        { onSuccess: saved },
      );
    },
    isPending,
    error,
  };
}

/** Edits the name, the URL and the events of a webhook. */
export function EditWebhookDialog({ webhook, onClose }: EditWebhookDialogProps) {
  const edit = useSave(webhook, onClose);
  const { fields, change, outdated, error } = edit;
  const problem = fieldProblem(error);
  return (
    <FormDialog
      title={`Edit ${webhook.name}`}
      action={outdated === undefined ? "Save" : "Save anyway"}
      onClose={onClose}
      onSubmit={edit.save}
      isPending={edit.isPending}
      isComplete={isComplete(fields)}
      error={problem === undefined ? error : null}
    >
      {outdated !== undefined && (
        <ChangedWebhook
          seen={outdated}
          current={webhook}
          action={
            <Button size="small" onPress={() => edit.takeTheirs(outdated)}>
              Take theirs
            </Button>
          }
        >
          Save again to replace it with your values.
        </ChangedWebhook>
      )}
      <WebhookFields
        draft={fields}
        onChange={({ events, ...changed }) =>
          change({ ...changed, ...(events && { events: [...events] }) })
        }
        problem={problem}
      />
    </FormDialog>
  );
}
