import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { draftIn } from "../api/problem.ts";
import type { Environment, Protection } from "../api/schema.d.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { Differences } from "../state/differences.tsx";
import {
  approvalsText,
  exceptions,
  exceptionTexts,
  isLower,
  protectionDifferences,
} from "../state/protection.ts";
import { capitalized } from "../state/words.ts";
import { Checkbox, Select, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./environments.module.css";

/** The choice that ends a protection. */
const none = "0";
const approvalChoices = ["1", "2", "3", none] as const;
type Approvals = (typeof approvalChoices)[number];

const first: Protection = {
  approvals: 1,
  self_approval: false,
  without_approval: ["off", "rollback"],
};

type DialogProps = { environment: Environment; onClose: () => void };

/** Protects an environment, or changes its protection. A lower protection becomes a change request, or needs a reason. */
export function ProtectionDialog({ environment, onClose }: DialogProps) {
  const { name, protected: before } = environment;
  const [draft, setDraft] = useState(before ?? first);
  const [isEnded, setEnded] = useState(false);
  const [reason, setReason] = useState<string>();
  const { mutate, isPending, error } = useProtect(environment, onClose);
  const after = isEnded ? null : draft;
  const lowers = isLower(before, after);
  const differences = protectionDifferences(before, after);
  const isBypass = lowers && reason !== undefined;
  const isReasoned = !isBypass || reason.trim() !== "";
  return (
    <FormDialog
      title={before === null ? `Protect ${name}` : `Protection of ${name}`}
      action={actionOf({ isNew: before === null, lowers, isBypass })}
      onClose={onClose}
      onSubmit={() => mutate({ after, ...(isBypass && { reason: reason.trim() }) })}
      isPending={isPending}
      isComplete={differences.length > 0 && isReasoned}
      isDanger={isBypass}
      error={error}
    >
      <p>
        Changes of what flags answer in <bdi>{name}</bdi> then need an approved change request.
      </p>
      <Select<Approvals>
        label="Approvals"
        value={isEnded ? none : (String(draft.approvals) as Approvals)}
        onChange={(value) => {
          setEnded(value === none);
          if (value !== none) setDraft({ ...draft, approvals: Number(value) });
        }}
        options={approvalChoices
          .filter((value) => value !== none || before !== null)
          .map((value) => ({
            value,
            label: value === none ? "Not protected" : approvalsText(Number(value)),
          }))}
      />
      {!isEnded && <ProtectionFields draft={draft} onChange={setDraft} />}
      {before !== null && differences.length > 0 && (
        <Differences items={differences} label="Changes" />
      )}
      {lowers && <BypassFields reason={reason} onChange={setReason} />}
    </FormDialog>
  );
}

function actionOf(of: { isNew: boolean; lowers: boolean; isBypass: boolean }): string {
  if (of.isNew) return "Protect";
  if (of.isBypass) return "Change without approval";
  return of.lowers ? "Request the change" : "Change the protection";
}

type FieldsProps = { draft: Protection; onChange: (draft: Protection) => void };

function ProtectionFields({ draft, onChange }: FieldsProps) {
  const { without_approval: free } = draft;
  return (
    <fieldset className={styles.choices}>
      <legend className="visually-hidden">Rules of the protection</legend>
      {exceptions.map((each) => (
        <Checkbox
          key={each}
          isSelected={free.includes(each)}
          onChange={(isFree) => {
            const others = free.filter((other) => other !== each);
            onChange({ ...draft, without_approval: isFree ? [...others, each] : others });
          }}
        >
          {capitalized(exceptionTexts[each])} needs no approval
        </Checkbox>
      ))}
      <Checkbox
        isSelected={draft.self_approval}
        onChange={(isBySelf) => onChange({ ...draft, self_approval: isBySelf })}
      >
        Authors may approve their own requests
      </Checkbox>
    </fieldset>
  );
}

type BypassProps = { reason: string | undefined; onChange: (reason: string | undefined) => void };

function BypassFields({ reason, onChange }: BypassProps) {
  return (
    <>
      <p>This lowers the protection, so it becomes a change request, which others approve.</p>
      <Checkbox
        isSelected={reason !== undefined}
        onChange={(isBypass) => onChange(isBypass ? "" : undefined)}
      >
        Change it now without approval. The history shows the reason to everybody.
      </Checkbox>
      {reason !== undefined && (
        <TextField label="Reason" value={reason} onChange={onChange} rows={2} isRequired />
      )}
    </>
  );
}

type Protect = { after: Protection | null; reason?: string };

/**
 * Changes the protection. The API answers a lower one without a reason with a draft of a change request, which is then
 * opened and shown.
 */
function useProtect({ id, name }: Environment, onClose: () => void) {
  const { api, me, token } = useKeySession();
  const { refresh } = useSessions();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: async ({ after, reason }: Protect): Promise<string | undefined> => {
      const path = { projectId: me.project.id, environmentId: id };
      try {
        await unwrap(
          api.PATCH("/api/v1/projects/{projectId}/environments/{environmentId}", {
            params: { path },
            body: { protected: after, ...(reason !== undefined && { bypass_reason: reason }) },
          }),
        );
        return undefined;
      } catch (error) {
        const draft = draftIn(error);
        if (draft === undefined) throw error;
        const params = { path: { requestId: draft } };
        await unwrap(api.POST("/api/v1/change-requests/{requestId}/open", { params }));
        return draft;
      }
    },
    onSuccess: async (requestId, { after }) => {
      await refresh(token);
      onClose();
      if (requestId === undefined)
        return notify({
          text: `${name} is ${after === null ? "not protected any more" : "protected"}.`,
        });
      notify({ text: "The change of the protection is requested." });
      return navigate({ to: "/change-requests/$requestId", params: { requestId } });
    },
  });
}
