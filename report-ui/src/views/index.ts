import type { View } from "../view";
import { operators } from "./operators";
import { overview } from "./overview";
import { timeline } from "./timeline";

export const VIEWS: View[] = [overview, operators, timeline];
