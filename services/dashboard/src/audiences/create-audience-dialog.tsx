import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem } from "../api/problem.ts";
import type { CreateAudience } from "../api/schema.d.ts";
import { suggestKey } from "../flags/flag-search.ts";
import { useKeySession } from "../session/session.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";

function useCreateAudience(onClose: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  return useMutation({
    mutationFn: (body: CreateAudience) =>
      sendOnce(body, (header) =>
        unwrap(api.POST("/api/v1/audiences", { params: { header }, body })),
      ),
    onSuccess: async ({ key }) => {
      await client.invalidateQueries({ queryKey: ["audiences"], exact: true });
      onClose();
      await navigate({ to: "/audiences/$audienceKey", params: { audienceKey: key } });
    },
  });
}

/** Creates an audience without users, and opens its page. */
export function CreateAudienceDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [ownKey, setOwnKey] = useState<string>();
  const [description, setDescription] = useState("");
  const { mutate, isPending, error } = useCreateAudience(onClose);
  const key = ownKey ?? suggestKey(name);
  const isTaken = error instanceof ApiProblem && error.code === "CONFLICT_001";
  return (
    <FormDialog
      title="Create an audience"
      action="Create audience"
      onClose={onClose}
      onSubmit={() => mutate({ key, name: name.trim(), description })}
      isPending={isPending}
      isComplete={name.trim() !== "" && key !== ""}
      error={isTaken ? null : error}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus isRequired />
      <TextField
        label="Key"
        value={key}
        onChange={setOwnKey}
        isCode
        isRequired
        description="Rules use the key, so it cannot change later."
        error={isTaken ? error.message : undefined}
      />
      <TextField label="Description" value={description} onChange={setDescription} rows={2} />
    </FormDialog>
  );
}
