/** Whether what arrived is what a channel answers with: types alone are a promise that nobody keeps at run time. */

/** As much of JSON Schema as the answers of channels use. */
export interface Shape {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

const isKind: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/**
 * What is wrong with a value, and where; undefined where it fits. Fields that are not known are left alone: a newer
 * Homing may send them.
 */
export function mismatch(
  value: unknown,
  shape: Shape,
  shapes: Readonly<Record<string, Shape>>,
  path = "data",
): string | undefined {
  if (shape.$ref !== undefined) return mismatch(value, shapes[shape.$ref] ?? {}, shapes, path);
  if (shape.anyOf !== undefined) {
    const fits = shape.anyOf.some((one) => mismatch(value, one, shapes, path) === undefined);
    return fits ? undefined : `${path} is none of the kinds that it may be`;
  }
  const values = shape.const === undefined ? shape.enum : [shape.const];
  if (values !== undefined && !values.includes(value)) return `${path} is not one of ${JSON.stringify(values)}`;
  if (shape.type !== undefined && !isKind[shape.type]?.(value)) return `${path} is not of type ${shape.type}`;
  if (shape.items !== undefined) {
    for (const [at, one] of (value as unknown[]).entries()) {
      const wrong = mismatch(one, shape.items, shapes, `${path}[${at}]`);
      if (wrong !== undefined) return wrong;
    }
  }
  for (const [name, one] of Object.entries(shape.properties ?? {})) {
    const inside = (value as Record<string, unknown>)[name];
    if (inside === undefined && !shape.required?.includes(name)) continue;
    const wrong = inside === undefined ? `${path}.${name} is missing` : mismatch(inside, one, shapes, `${path}.${name}`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}
