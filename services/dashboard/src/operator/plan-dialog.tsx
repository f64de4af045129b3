import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Organization } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./operator.module.css";
import { useOrganizations, useWrite } from "./operator-queries.ts";
import { PlanComparison, PlanFields } from "./plan-fields.tsx";
import { knownPlans } from "./plans.ts";

/** Moves an organization to another plan, and shows the limits of both before. */
export function PlanDialog({
  organization,
  onClose,
}: {
  organization: Organization;
  onClose: () => void;
}) {
  const { api } = useOperatorSession();
  const organizations = useOrganizations();
  const plans = knownPlans([...(organizations.data ?? []), organization]);
  const [plan, setPlan] = useState(organization.plan);
  const { mutate, isPending, error } = useWrite(
    (next: string) =>
      unwrap(
        api.PATCH("/api/v1/organizations/{organizationId}", {
          params: { path: { organizationId: organization.id } },
          body: { plan: next },
        }),
      ),
    (changed) => {
      onClose();
      notify({ text: `${changed.name} has the plan ${changed.plan}.` });
    },
  );
  return (
    <FormDialog
      title={`Change the plan of ${organization.name}`}
      action="Change plan"
      onClose={onClose}
      onSubmit={() => mutate(plan.trim())}
      isPending={isPending}
      isComplete={plan.trim() !== "" && plan.trim() !== organization.plan}
      error={error}
    >
      <PlanFields plans={plans} plan={plan} onChange={setPlan} />
      <PlanComparison
        {...(plan !== organization.plan && {
          present: { name: organization.plan, limits: organization.limits },
        })}
        next={{ name: plan, plan: plans.find(({ name }) => name === plan) }}
      />
      <p className={styles.note}>
        The limits apply on all edges within a second. Existing projects and open streams beyond a
        smaller limit stay; new ones are rejected.
      </p>
    </FormDialog>
  );
}
