import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { useOperatorSession } from "../session/session.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { usePlans, useWrite } from "./operator-queries.ts";
import { PlanFields } from "./plan-fields.tsx";

/** Creates an organization, and opens its page. */
export function CreateOrganizationDialog({ onClose }: { onClose: () => void }) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  const [name, setName] = useState("");
  const [plan, setPlan] = useState("pro");
  const { data: plans = [] } = usePlans();
  const { mutate, isPending, error } = useWrite(
    (body: { name: string; plan: string }) =>
      sendOnce(body, (header) =>
        unwrap(api.POST("/api/v1/organizations", { params: { header }, body })),
      ),
    ({ id }) => {
      onClose();
      void navigate({ to: "/organizations/$organizationId", params: { organizationId: id } });
    },
  );
  return (
    <FormDialog
      title="Create an organization"
      action="Create organization"
      onClose={onClose}
      onSubmit={() => mutate({ name: name.trim(), plan })}
      isPending={isPending}
      isComplete={name.trim() !== "" && plans.some((each) => each.name === plan)}
      error={error}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus isRequired />
      <PlanFields plan={plan} onChange={setPlan} />
    </FormDialog>
  );
}
