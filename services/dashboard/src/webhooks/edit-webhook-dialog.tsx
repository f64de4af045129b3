import { useState } from "react";
import type { UpdateWebhook, Webhook } from "../api/schema.d.ts";
import { Dialog } from "../ui/dialog.tsx";
import { DialogForm } from "../ui/form-dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { changedFields, conflictsOf } from "./webhook-edits.ts";
import { isComplete, WebhookFields } from "./webhook-fields.tsx";
import { useReadWebhook, useUpdateWebhook } from "./webhook-queries.ts";
import { fieldProblem } from "./webhook-texts.ts";

/** Edits the name, the URL and the events of a webhook. */
export function EditWebhookDialog({
  webhook,
  isOpen,
  onClose,
}: {
  webhook: Webhook;
  isOpen: boolean;
  onClose: () => void;
}) {
  return (
    <Dialog title={`Edit ${webhook.name}`} isOpen={isOpen} onClose={onClose}>
      <EditWebhookForm webhook={webhook} onClose={onClose} />
    </Dialog>
  );
}

/**
 * Sends the fields that differ from what the person saw. If somebody else changed one of them meanwhile, it shows their
 * value and saves only when asked again.
 */
function useSave(webhook: Webhook, onClose: () => void) {
  const [seen, setSeen] = useState(webhook);
  const [draft, setDraft] = useState<UpdateWebhook>({});
  const [conflicts, setConflicts] = useState<readonly string[]>([]);
  const [readError, setReadError] = useState<unknown>(null);
  const read = useReadWebhook(webhook.id);
  const update = useUpdateWebhook(webhook.id);

  async function save(): Promise<void> {
    setReadError(null);
    try {
      const current = await read();
      const found = conflictsOf({ seen, draft, current });
      setSeen(current);
      setConflicts(found);
      if (found.length > 0) return;
      const changed = changedFields(draft, current);
      update.mutate(changed, {
        onSuccess: ({ name }) => {
          notify({ text: `${name} is saved.` });
          onClose();
        },
      });
    } catch (error) {
      setReadError(error);
    }
  }
  return {
    fields: { ...seen, ...draft },
    change: (changed: UpdateWebhook) => setDraft({ ...draft, ...changed }),
    conflicts,
    save: () => void save(),
    isPending: update.isPending,
    error: readError ?? update.error,
  };
}

function EditWebhookForm({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const { fields, change, conflicts, save, isPending, error } = useSave(webhook, onClose);
  const problem = fieldProblem(error);
  return (
    <DialogForm
      action={conflicts.length > 0 ? "Save anyway" : "Save"}
      onClose={onClose}
      onSubmit={save}
      isPending={isPending}
      isComplete={isComplete(fields)}
      error={problem === undefined ? error : null}
    >
      {conflicts.length > 0 && (
        <Warning>
          <p>Somebody else changed this webhook meanwhile:</p>
          <ul>
            {conflicts.map((conflict) => (
              <li key={conflict}>{conflict}</li>
            ))}
          </ul>
          <p>Save again to replace it with your values.</p>
        </Warning>
      )}
      <WebhookFields
        draft={fields}
        onChange={({ events, ...changed }) =>
          change({ ...changed, ...(events && { events: [...events] }) })
        }
        problem={problem}
      />
    </DialogForm>
  );
}
