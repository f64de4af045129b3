import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { useKeySession } from "../session/session.tsx";
import { Differences } from "../state/differences.tsx";
import { localTime } from "../ui/dates.ts";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { bodyText, type Proposal } from "./proposal.ts";
import { ProposeContext } from "./use-proposing.ts";

/** Lets the pages in it propose changes, and shows the dialog for them. It outlives the dialog that proposes. */
export function ProposalsProvider({ children }: { children: ReactNode }) {
  const [proposal, setProposal] = useState<Proposal>();
  return (
    <ProposeContext value={setProposal}>
      {children}
      {proposal !== undefined && (
        <ProposalDialog proposal={proposal} onClose={() => setProposal(undefined)} />
      )}
    </ProposeContext>
  );
}

type DialogProps = { proposal: Proposal; onClose: () => void };

/** Asks for the title and the reason of a change request, and opens it. */
function ProposalDialog({ proposal, onClose }: DialogProps) {
  const { applyAt, differences, warning } = proposal;
  const [title, setTitle] = useState(proposal.title);
  const [reason, setReason] = useState("");
  const { mutate, isPending, error } = useOpenRequest(proposal, onClose);
  return (
    <FormDialog
      title="Request the change"
      action="Request the change"
      onClose={onClose}
      onSubmit={() => mutate({ title, reason })}
      isPending={isPending}
      isComplete={title.trim() !== ""}
      error={error}
    >
      <p>The change is made after other people have approved it.</p>
      {warning !== undefined && <Warning>{warning}</Warning>}
      <Differences items={differences} label="Changes" />
      {applyAt !== undefined && (
        <p>
          Once approved, it is applied at <b>{localTime(new Date(applyAt))}</b>.
        </p>
      )}
      <TextField label="Title" value={title} onChange={setTitle} isRequired />
      <TextField
        label="Reason"
        value={reason}
        onChange={setReason}
        rows={3}
        autoFocus
        description="What reviewers need to know. Web addresses become links."
      />
    </FormDialog>
  );
}

/** The body of the types. `bodySerializer` writes the one that is sent. */
const emptyBody = { title: "", changes: [] };

function useOpenRequest(proposal: Proposal, onClose: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  return useMutation({
    mutationFn: (words: { title: string; reason: string }) => {
      const text = bodyText(proposal, words);
      return sendOnce(text, (header) =>
        unwrap(
          api.POST("/api/v1/change-requests", {
            params: { header },
            body: emptyBody,
            bodySerializer: () => text,
          }),
        ),
      );
    },
    onSuccess: ({ id, title }) => {
      proposal.onOpened?.();
      onClose();
      const open = () =>
        void navigate({ to: "/change-requests/$requestId", params: { requestId: id } });
      notify({
        text: `The change request “${title}” is open.`,
        action: { label: "Show the request", onPress: open },
      });
      void client.invalidateQueries({ queryKey: ["change-requests"] });
    },
    // A proposal can contain entries of a list, which are personal data.
    gcTime: 0,
  });
}
