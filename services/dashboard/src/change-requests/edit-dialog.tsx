import {
  type CalendarDateTime,
  fromDate,
  getLocalTimeZone,
  toCalendarDateTime,
} from "@internationalized/date";
import { useState } from "react";
import type { ChangeRequest } from "../api/schema.d.ts";
import { resolveLocal } from "../schedules/local-times.ts";
import { DateTimeField } from "../ui/date-time-field.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import type { StepForm } from "./step-dialogs.tsx";

/** Edits the title, the reason and the time of a request. Another time removes the approvals. */
export function EditDialog({ request, send, ...form }: StepForm & { request: ChangeRequest }) {
  const zone = getLocalTimeZone();
  const before = request.apply_at === null ? null : localOf(request.apply_at, zone);
  const [title, setTitle] = useState(request.title);
  const [reason, setReason] = useState(request.reason);
  const [local, setLocal] = useState<CalendarDateTime | null>(before);
  const [isIncomplete, setIncomplete] = useState(false);
  const isSameTime =
    local === null || before === null ? local === before : local.compare(before) === 0;
  const submit = () => {
    const at = local && resolveLocal(local, zone, "first").instant.toISOString();
    const body = { title: title.trim(), reason, ...(!isSameTime && { apply_at: at }) };
    send({ kind: "edit", body });
  };
  return (
    <FormDialog
      {...form}
      title="Edit the request"
      action="Save"
      onSubmit={submit}
      isComplete={title.trim() !== "" && !isIncomplete}
    >
      <TextField label="Title" value={title} onChange={setTitle} isRequired />
      <TextField label="Reason" value={reason} onChange={setReason} rows={3} />
      <DateTimeField
        label="Apply at"
        value={local}
        onChange={setLocal}
        onIncomplete={setIncomplete}
        description="Optional. Another time removes the approvals."
      />
      <p>Who edits a request cannot approve it, unless the protection allows that.</p>
    </FormDialog>
  );
}

const localOf = (instant: string, zone: string): CalendarDateTime =>
  toCalendarDateTime(fromDate(new Date(instant), zone));
