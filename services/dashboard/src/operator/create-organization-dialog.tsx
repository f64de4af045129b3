import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import type { Organization } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useWrite } from "./operator-queries.ts";
import { PlanComparison, PlanFields } from "./plan-fields.tsx";
import { knownPlans } from "./plans.ts";

/** Creates an organization, and opens its page. */
export function CreateOrganizationDialog({
  organizations,
  onClose,
}: {
  organizations: readonly Organization[];
  onClose: () => void;
}) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  const [name, setName] = useState("");
  const plans = knownPlans(organizations);
  const [plan, setPlan] = useState("pro");
  const { mutate, isPending, error } = useWrite(
    (body: { name: string; plan: string }) =>
      sendOnce(body, (header) =>
        unwrap(api.POST("/api/v1/organizations", { params: { header }, body })),
      ),
    ({ id }) => {
      onClose();
      void navigate({ to: `/organizations/${id}` as "/" });
    },
  );
  return (
    <FormDialog
      title="Create an organization"
      action="Create organization"
      onClose={onClose}
      onSubmit={() => mutate({ name: name.trim(), plan: plan.trim() })}
      isPending={isPending}
      isComplete={name.trim() !== "" && plan.trim() !== ""}
      error={error}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus isRequired />
      <PlanFields plans={plans} plan={plan} onChange={setPlan} />
      <PlanComparison next={{ name: plan, plan: plans.find((known) => known.name === plan) }} />
    </FormDialog>
  );
}
