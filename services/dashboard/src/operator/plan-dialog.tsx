import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Organization } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./operator.module.css";
import { organizationRoute, useWrite } from "./operator-queries.ts";
import { PlanFields } from "./plan-fields.tsx";

type PlanDialogProps = { organization: Organization; onClose: () => void };

/** Moves an organization to another plan, and shows the limits of both before. */
export function PlanDialog({ organization, onClose }: PlanDialogProps) {
  const { api } = useOperatorSession();
  const [plan, setPlan] = useState(organization.plan);
  const { mutate, isPending, error } = useWrite(
    (next: string) =>
      unwrap(
        api.PATCH(organizationRoute, {
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
      onSubmit={() => mutate(plan)}
      isPending={isPending}
      isComplete={plan !== organization.plan}
      error={error}
    >
      <PlanFields
        plan={plan}
        present={{ name: organization.plan, limits: organization.limits }}
        onChange={setPlan}
      />
      <p className={styles.note}>
        The limits apply on all edges within a second. Existing projects and open streams beyond a
        smaller limit stay; new ones are rejected.
      </p>
    </FormDialog>
  );
}
