import { useState } from "react";
import { CodeBlock } from "../ui/code-block.tsx";
import { type Option, Select, TextField } from "../ui/fields.tsx";
import { generateSecret } from "./webhook-texts.ts";

type Kind = "generated" | "own" | "none";

type SecretChoice = {
  kind: Kind;
  setKind: (kind: Kind) => void;
  generated: string;
  own: string;
  setOwn: (own: string) => void;
};

/** The choice of a secret. It exists only while its dialog is open. */
export function useSecretChoice(): SecretChoice {
  const [kind, setKind] = useState<Kind>("generated");
  const [generated] = useState(generateSecret);
  const [own, setOwn] = useState("");
  return { kind, setKind, generated, own, setOwn };
}

/** Returns the chosen secret, or null for none. An own secret that is not entered yet is empty. */
export function chosenSecret({ kind, generated, own }: SecretChoice): string | null {
  if (kind === "none") return null;
  return kind === "own" ? own : generated;
}

const generatedOption: Option<Kind> = {
  value: "generated",
  label: "Generate a secret",
  note: "recommended",
};
const ownOption: Option<Kind> = { value: "own", label: "Use my own secret" };
const noneOption: Option<Kind> = { value: "none", label: "Do not sign deliveries" };

type Props = {
  choice: SecretChoice;
  error: string | undefined;
  isOptional?: boolean;
  isShown?: boolean;
};

/** Fields to choose a secret. `isOptional` adds the option without a secret. `isShown` shows a generated secret. */
export function SecretFields({ choice, error, isOptional = false, isShown = false }: Props) {
  const { kind, setKind, generated, own, setOwn } = choice;
  return (
    <>
      <Select
        label="Secret"
        value={kind}
        onChange={setKind}
        options={[generatedOption, ownOption, ...(isOptional ? [noneOption] : [])]}
        description={
          kind === "none"
            ? "The receiver cannot tell Halyard's requests from those of others."
            : "Halyard signs every delivery with it, so that the receiver can reject requests of others."
        }
      />
      {kind === "generated" && isShown && (
        <CodeBlock title="The new secret" code={generated} wraps />
      )}
      {kind === "own" && (
        <TextField
          label="Own secret"
          value={own}
          onChange={setOwn}
          error={error}
          description="1 to 256 bytes. Standard Webhooks recommends whsec_ and the base64 of 24 to 64 random bytes."
          autoComplete="off"
          isCode
          isRequired
        />
      )}
    </>
  );
}
