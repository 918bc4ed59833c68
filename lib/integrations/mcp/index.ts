/**
 * Limits calls of MCP: their sessions as keys, and Nest's own contexts of MCP.
 * @module nestjs-sluice/mcp
 */
export { bySession } from './by-session.js';
export { McpReader } from './mcp.reader.js';
