/* SPDX-License-Identifier: BSD-3-Clause */
/* nothing.c - a program that does nothing: what it costs to run is the cost of starting and ending
 * a process */
int main(void)
{
	return 0;
}
