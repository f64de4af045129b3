import { useState } from "react";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import type { Step } from "./request-queries.ts";

export type StepForm = {
  onClose: () => void;
  isPending: boolean;
  error: unknown;
  send: (step: Step) => void;
};

/** Rejects a request, which ends it. */
export function RejectDialog({ send, ...form }: StepForm) {
  const [comment, setComment] = useState("");
  return (
    <FormDialog
      {...form}
      title="Reject the request"
      action="Reject"
      isDanger
      onSubmit={() => send({ kind: "reject", comment: comment.trim() })}
      isComplete
    >
      <p>One rejection ends the request. Its author can open another one.</p>
      <TextField label="Comment" value={comment} onChange={setComment} rows={3} autoFocus />
    </FormDialog>
  );
}

/** Applies a request without its approvals. */
export function BypassDialog({ send, ...form }: StepForm) {
  const [reason, setReason] = useState("");
  return (
    <FormDialog
      {...form}
      title="Bypass the approval"
      action="Apply without approvals"
      isDanger
      onSubmit={() => send({ kind: "bypass", reason: reason.trim() })}
      isComplete={reason.trim() !== ""}
    >
      <p>
        The changes are made at once, although approvals are missing. The history shows the bypass
        and its reason to everybody, and webhooks report it.
      </p>
      <TextField label="Reason" value={reason} onChange={setReason} rows={3} isRequired autoFocus />
    </FormDialog>
  );
}
