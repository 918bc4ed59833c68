import { dirname, join } from 'node:path';
import type TS from 'typescript';
import type { Compiler } from './project-tools.js';
import type { Note } from './report.js';

interface ImportedName {
  readonly module: string;
  /** Its name in that module. */
  readonly name: string;
}

export class Source {
  readonly ast: TS.SourceFile;
  readonly edits: Edits;
  /** The imports of the file from packages and files, by local name. */
  readonly imported = new Map<string, ImportedName>();
  /** The imports to add: module, then names, such as `RateLimit` or `type HeaderFormatter`. */
  readonly wanted = new Map<string, Set<string>>();
  /** The declarations to add after the imports, by name. */
  readonly helpers = new Map<string, string>();
  /** The changes of the migration, and the places that it left unchanged. */
  readonly changed: Note[] = [];
  readonly left: Note[] = [];

  constructor(
    readonly ts: Compiler,
    readonly path: string,
    /** The path for reports. */
    readonly shown: string,
    readonly text: string,
  ) {
    this.edits = new Edits(text);
    const kind = /\.[jt]sx$/.test(path) ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
    this.ast = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, kind);
    for (const statement of this.ast.statements) {
      if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue;
      const { name: whole, namedBindings: bindings } = statement.importClause ?? {};
      if (whole !== undefined) {
        this.imported.set(whole.text, { module: statement.moduleSpecifier.text, name: 'default' });
      }
      if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
      for (const { name, propertyName } of bindings.elements) {
        this.imported.set(name.text, { module: statement.moduleSpecifier.text, name: (propertyName ?? name).text });
      }
    }
  }

  done(node: TS.Node, text: string): void {
    this.changed.push({ path: this.shown, line: this.lineOf(node), text });
  }

  /** Reports a place that is left unchanged, the reason and the alternative. Each place is reported once per reason. */
  leave(node: TS.Node, text: string): void {
    const line = this.lineOf(node);
    const isKnown = this.left.some((other) => other.line === line && other.text === text);
    if (!isKnown) this.left.push({ path: this.shown, line, text });
  }

  want(module: string, name: string): void {
    const names = this.wanted.get(module);
    if (names === undefined) this.wanted.set(module, new Set([name]));
    else names.add(name);
  }

  /** Marks a name of this package as required, and returns it. */
  own(name: string): string {
    this.want('nestjs-sluice', name);
    return name.replace(/^type /, '');
  }

  /** The path of a module of the project that this file imports. */
  pathOf(module: string): string {
    return `${join(dirname(this.path), module.replace(/\.js$/, ''))}.ts`;
  }

  lineOf(node: TS.Node): number {
    return this.ast.getLineAndCharacterOfPosition(node.getStart(this.ast)).line + 1;
  }

  /** The indentation of the line on which a node begins. */
  indentOf(node: TS.Node): string {
    const start = this.text.lastIndexOf('\n', node.getStart(this.ast)) + 1;
    return /^[ \t]*/.exec(this.text.slice(start))![0];
  }

  /** The original text of a node. */
  before(node: TS.Node): string {
    return node.getText(this.ast);
  }

  /** The text of a node with its edits applied. */
  now(node: TS.Node): string {
    return this.edits.render(node.getStart(this.ast), node.end);
  }

  /** Returns true if no edit has replaced a node or a part of it. */
  keeps(node: TS.Node): boolean {
    return this.edits.keeps(node.getStart(this.ast), node.end);
  }

  rewrite(node: TS.Node, text: string): void {
    this.edits.rewrite(node.getStart(this.ast), node.end, text);
  }

  /** Removes some entries of a list with their commas, and with their lines if they have lines of their own. */
  remove(list: readonly TS.Node[], removed: ReadonlySet<TS.Node>): void {
    const last = list.findLast((node) => !removed.has(node));
    if (last === undefined) {
      if (list.length === 0) return;
      const { end } = list.at(-1)!;
      this.edits.replace(list[0]!.getStart(this.ast), end + /^(?:\s*,)?/.exec(this.text.slice(end))![0].length, '');
      return;
    }
    let cut = last.end;
    for (const [index, node] of list.entries()) {
      if (!removed.has(node)) continue;
      const start = node.getStart(this.ast);
      const lineStart = this.text.lastIndexOf('\n', start - 1) + 1;
      const rest = /^[ \t]*,?[ \t]*(?:\/\/[^\n]*)?\n/.exec(this.text.slice(node.end));
      if (rest !== null && this.text.slice(lineStart, start).trim() === '') {
        this.edits.replace(lineStart, node.end + rest[0].length, '');
        cut = node.end;
      } else if (node.end < last.end) {
        this.edits.replace(start, list[index + 1]!.getStart(this.ast), '');
      } else {
        this.edits.replace(cut, node.end, '');
        cut = node.end;
      }
    }
  }

  /** Removes some entries of a list; if none is left, also the property that contains the list, unless it is the only one. */
  removeFrom(list: TS.ArrayLiteralExpression, removed: ReadonlySet<TS.Node>): void {
    const { parent } = list;
    const isWhole = list.elements.every((element) => removed.has(element)) && this.ts.isPropertyAssignment(parent);
    const owner = parent.parent;
    if (isWhole && this.ts.isObjectLiteralExpression(owner) && owner.properties.length > 1) {
      this.remove(owner.properties, new Set([parent]));
    } else this.remove(list.elements, removed);
  }

  /** Removes a node with the line break or space after it; for a declaration, also with an empty line after it. */
  removeLine(node: TS.Node, isDeclaration = false): void {
    const start = node.getStart(this.ast);
    const lineStart = this.text.lastIndexOf('\n', start - 1) + 1;
    const after = /^[ \t]*\n?/.exec(this.text.slice(node.end))![0];
    const isAlone = this.text.slice(lineStart, start).trim() === '' && after.endsWith('\n');
    const empty = isDeclaration && this.text[node.end + after.length] === '\n' ? 1 : 0;
    if (isAlone) this.edits.replace(lineStart, node.end + after.length + empty, '');
    else this.edits.replace(start, node.end + after.replace('\n', '').length, '');
  }

  /** Calls a function with each node below one, from the inside out. */
  visit(node: TS.Node, callback: (node: TS.Node) => void): void {
    this.ts.forEachChild(node, (child) => this.visit(child, callback));
    callback(node);
  }

  usesOf(local: string, under: TS.Node = this.ast): TS.Identifier[] {
    return this.uses(under).filter(({ text }) => text === local);
  }

  /** The uses of all names, without imports, properties and keys. */
  uses(under: TS.Node = this.ast): TS.Identifier[] {
    const { ts } = this;
    const found: TS.Identifier[] = [];
    this.visit(under, (node) => {
      if (!ts.isIdentifier(node)) return;
      const { parent } = node;
      if (ts.isImportSpecifier(parent) || ts.isImportClause(parent)) return;
      if (ts.isPropertyAccessExpression(parent) && parent.name === node) return;
      if (ts.isPropertyAssignment(parent) && parent.name === node) return;
      if ((ts.isMethodDeclaration(parent) || ts.isPropertyDeclaration(parent)) && parent.name === node) return;
      found.push(node);
    });
    return found;
  }

  localOf(module: RegExp, name: string): string | undefined {
    for (const [local, from] of this.imported) if (from.name === name && module.test(from.module)) return local;
    return undefined;
  }

  /** The expression without parentheses, `as` and `satisfies`. */
  bare(node: TS.Expression): TS.Expression {
    const { ts } = this;
    let inner = node;
    while (
      ts.isParenthesizedExpression(inner) ||
      ts.isAsExpression(inner) ||
      ts.isSatisfiesExpression(inner) ||
      ts.isNonNullExpression(inner)
    ) {
      inner = inner.expression;
    }
    return inner;
  }

  property(object: TS.ObjectLiteralExpression, name: string): TS.ObjectLiteralElementLike | undefined {
    return object.properties.find((property) => this.nameOf(property.name) === name);
  }

  /** The value of a property, if it has its own. */
  valueOf(property: TS.ObjectLiteralElementLike | undefined): TS.Expression | undefined {
    if (property === undefined) return undefined;
    if (this.ts.isPropertyAssignment(property)) return property.initializer;
    return this.ts.isShorthandPropertyAssignment(property) ? property.name : undefined;
  }

  /** The function that a property is, or that is its value. */
  functionOf(property: TS.ObjectLiteralElementLike) {
    const { ts } = this;
    if (ts.isMethodDeclaration(property)) return property;
    const value = this.valueOf(property);
    const fn = value && this.bare(value);
    return fn !== undefined && (ts.isArrowFunction(fn) || ts.isFunctionExpression(fn)) ? fn : undefined;
  }

  /** The text of a property name; `undefined` for a computed name, or if there is none. */
  nameOf(name: TS.PropertyName | undefined): string | undefined {
    const { ts } = this;
    if (name === undefined) return undefined;
    return ts.isIdentifier(name) || ts.isStringLiteralLike(name) || ts.isNumericLiteral(name) ? name.text : undefined;
  }

  /** The method of a class, or another member with this name. */
  method({ members }: TS.ClassDeclaration, name: string): TS.MethodDeclaration | undefined {
    const member = members.find((one) => one.name !== undefined && this.before(one.name) === name);
    return member as TS.MethodDeclaration | undefined;
  }

  decoratorsOf(node: TS.Node): readonly TS.Decorator[] {
    return this.ts.canHaveDecorators(node) ? (this.ts.getDecorators(node) ?? []) : [];
  }

  literal(node: TS.Expression | undefined): string | undefined {
    return node !== undefined && this.ts.isStringLiteralLike(this.bare(node))
      ? (this.bare(node) as TS.StringLiteralLike).text
      : undefined;
  }

  /** The expressions that a function returns, without those of functions inside it. */
  returned(fn: TS.Node | undefined): TS.Expression[] {
    const { ts } = this;
    if (fn === undefined) return [];
    const body = (fn as TS.FunctionLikeDeclaration).body;
    if (body === undefined) return [];
    if (!ts.isBlock(body)) return [body];
    const found: TS.Expression[] = [];
    const search = (node: TS.Node): void => {
      if (ts.isReturnStatement(node) && node.expression !== undefined) found.push(node.expression);
      if (!ts.isFunctionLike(node)) ts.forEachChild(node, search);
    };
    search(body);
    return found;
  }

  /** A constant or function at the top level of this file, or in the scope of a node. */
  declared(name: string): TS.Expression | TS.FunctionDeclaration | undefined {
    const { ts } = this;
    let found: TS.Expression | TS.FunctionDeclaration | undefined;
    this.visit(this.ast, (node) => {
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.name.text === name) {
        found ??= node.initializer;
      }
      if (ts.isFunctionDeclaration(node) && node.name?.text === name) found ??= node;
    });
    return found;
  }

  /** The default export of the file, if it is one of its constants or functions. */
  exportedByDefault(): TS.Expression | TS.FunctionDeclaration | undefined {
    const { ts } = this;
    for (const statement of this.ast.statements) {
      if (ts.isExportAssignment(statement)) {
        const { expression } = statement;
        return ts.isIdentifier(expression) ? this.declared(expression.text) : expression;
      }
      const isFunction = ts.isFunctionDeclaration(statement);
      if (isFunction && statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword))
        return statement;
    }
    return undefined;
  }

  /** Entries to add before and after those of an object literal, in its layout. */
  extend(
    object: TS.ObjectLiteralExpression,
    head: readonly string[],
    tail: readonly string[],
    kept: readonly TS.Node[],
  ) {
    const between = this.separator(object);
    const first = kept[0];
    const last = kept.at(-1);
    if (first === undefined || last === undefined) {
      this.edits.insert(object.getStart(this.ast) + 1, ` ${[...head, ...tail].join(', ')} `);
      return;
    }
    this.edits.insert(first.getStart(this.ast), head.map((entry) => entry + between).join(''));
    this.edits.insert(last.end, tail.map((entry) => between + entry).join(''));
  }

  /** The separator between the entries of an object literal. */
  separator(object: TS.ObjectLiteralExpression): string {
    const first = object.properties[0];
    if (first === undefined) return ', ';
    const start = first.getStart(this.ast);
    const lead = /\n([ \t]*)$/.exec(this.text.slice(object.getStart(this.ast), start));
    return lead === null ? ', ' : `,\n${lead[1]!}`;
  }
}

/** Returns true if a node is another one or inside it. Both are of one file. */
export function isIn(node: TS.Node, container: TS.Node): boolean {
  return node.pos >= container.pos && node.end <= container.end;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Edits of a text by ranges. The rest of the text is unchanged. */
export class Edits {
  private list: Edit[] = [];

  constructor(readonly original: string) {}

  insert(at: number, text: string): void {
    if (text !== '') this.list.push({ start: at, end: at, text });
  }

  /** Replaces a range together with all edits inside it, except insertions at its ends. */
  replace(start: number, end: number, text: string): void {
    this.list = this.list.filter(
      (edit) =>
        edit.start < start || edit.end > end || (edit.start === edit.end && (edit.start === start || edit.end === end)),
    );
    this.list.push({ start, end, text });
  }

  /** Replaces a range together with all edits inside it and at its ends. */
  rewrite(start: number, end: number, text: string): void {
    this.list = this.list.filter((edit) => edit.start < start || edit.end > end);
    this.list.push({ start, end, text });
  }

  /** Returns true if no edit replaces a range or a part of it. */
  keeps(start: number, end: number): boolean {
    return this.list.every((edit) => edit.end <= start || edit.start >= end);
  }

  /** A part of the text with the edits inside it applied. */
  render(start = 0, end = this.original.length): string {
    const inside = this.list
      .map((edit, order) => ({ ...edit, order }))
      .filter((edit) => edit.start >= start && edit.end <= end)
      // An insertion at the start of a range comes before the replacement of the range.
      .toSorted((a, b) => a.start - b.start || Number(a.end > a.start) - Number(b.end > b.start) || a.order - b.order);
    let text = '';
    let at = start;
    for (const edit of inside) {
      if (edit.start < at) continue;
      text += this.original.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.original.slice(at, end);
  }
}
