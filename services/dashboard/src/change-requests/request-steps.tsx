import { useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { ChangeRequest } from "../api/schema.d.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useNow } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./change-requests.module.css";
import { EditDialog } from "./edit-dialog.tsx";
import {
  whyNotApply,
  whyNotApprove,
  whyNotBypass,
  whyNotEdit,
  whyNotReject,
  whyNotWithdraw,
} from "./may-act.ts";
import { type Step, useStep } from "./request-queries.ts";
import { BypassDialog, RejectDialog } from "./step-dialogs.tsx";

type StepsProps = {
  request: ChangeRequest;
  /** The hash of the content that the reader has looked at. */
  seenHash: string;
  /** Called with content that the reader has made. */
  onSeen: (request: ChangeRequest) => void;
};

const doneTexts: Readonly<Record<Step["kind"], string>> = {
  open: "The change is requested.",
  approve: "You have approved the request.",
  reject: "The request is rejected.",
  withdraw: "The request is withdrawn.",
  edit: "The request is saved.",
  rebase: "The request is based on the current values.",
  apply: "The changes are applied.",
  bypass: "The changes are applied without the approvals.",
};

/** The steps of a request. One that the reader cannot take is disabled, and says why. */
export function RequestSteps({ request, seenHash, onSeen }: StepsProps) {
  const [dialog, setDialog] = useState<Dialog>();
  const { mutate, isPending, error, reset } = useStep(request.id, (changed, { kind }) => {
    setDialog(undefined);
    if (kind === "edit" || kind === "rebase" || kind === "open") onSeen(changed);
    notify({ text: doneTexts[kind] });
  });
  const close = () => {
    reset();
    setDialog(undefined);
  };
  const open = (next: Dialog) => {
    reset();
    setDialog(next);
  };
  // The page shows the other content, and says that it has changed.
  const shown = isEditConflict(error) ? null : error;
  const form = { onClose: close, isPending, error: shown, send: mutate };
  return (
    <>
      <StepButtons {...{ request, seenHash, isPending }} onStep={mutate} onOpen={open} />
      {dialog === undefined && shown !== null && <ErrorPanel error={shown} />}
      {dialog === "reject" && <RejectDialog {...form} />}
      {dialog === "bypass" && <BypassDialog {...form} />}
      {dialog === "edit" && <EditDialog {...form} request={request} />}
    </>
  );
}

type Dialog = "reject" | "bypass" | "edit";

type ButtonsProps = Omit<StepsProps, "onSeen"> & {
  isPending: boolean;
  onStep: (step: Step) => void;
  onOpen: (dialog: Dialog) => void;
};

function StepButtons({ request, seenHash, isPending, onStep, onOpen }: ButtonsProps) {
  const reader = useKeySession();
  const now = useNow();
  return (
    <div className={styles.steps}>
      {offeredSteps(request, { reader, seenHash, now }).map(({ label, whyNot, variant, does }) => (
        <Button
          key={label}
          {...{ variant, whyNot }}
          isDisabled={isPending}
          onPress={() => (typeof does === "string" ? onOpen(does) : onStep(does))}
        >
          {label}
        </Button>
      ))}
    </div>
  );
}

type Offered = {
  label: string;
  whyNot: string | undefined;
  variant?: "primary" | "danger" | undefined;
  /** The step, or the dialog that asks for more. */
  does: Step | Dialog;
};

type Circumstances = { reader: Pick<KeySession, "me">; seenHash: string; now: Date };

/** Returns the buttons for the status of a request, the next step first. */
function offeredSteps(
  request: ChangeRequest,
  { reader, seenHash, now }: Circumstances,
): readonly Offered[] {
  const { status } = request;
  const whyNot = whyNotEdit(reader);
  const edit: Offered = { label: "Edit…", whyNot, does: "edit" };
  const main = (kind: "open" | "rebase", label: string): Offered => ({
    ...{ label, whyNot, variant: "primary", does: { kind } },
  });
  const approve: Offered = {
    label: "Approve",
    whyNot: whyNotApprove(request, reader, seenHash),
    variant: status === "open" ? "primary" : undefined,
    does: { kind: "approve", content_hash: seenHash },
  };
  const apply: Offered = {
    label: "Apply",
    whyNot: whyNotApply(request, reader, now),
    variant: status === "approved" ? "primary" : undefined,
    does: { kind: "apply" },
  };
  const withdraw = whyNotWithdraw(request, reader);
  if (status === "draft") return [main("open", "Request the change"), edit];
  return [
    ...(status === "stale" ? [main("rebase", "Rebase")] : [approve, apply]),
    { label: "Reject…", whyNot: whyNotReject(request, reader), does: "reject" },
    edit,
    { label: "Withdraw", whyNot: withdraw, does: { kind: "withdraw" } },
    {
      label: "Bypass the approval…",
      whyNot: whyNotBypass(request, reader),
      variant: "danger",
      does: "bypass",
    },
  ];
}
