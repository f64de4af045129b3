import { Lock } from "lucide-react";
import { Badge } from "../ui/badge.tsx";

/** The mark of an environment in which changes need an approved change request. */
export function ProtectedBadge() {
  return (
    <Badge tone="accent">
      <Lock size={12} aria-hidden /> Protected
    </Badge>
  );
}
