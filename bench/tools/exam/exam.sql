-- SPDX-License-Identifier: BSD-3-Clause
-- exam.sql - the database of exam.php; students and questions are added by who uses it
CREATE DATABASE exam CHARACTER SET utf8mb4;
CREATE USER exam IDENTIFIED BY 'exam';
GRANT SELECT, INSERT, UPDATE ON exam.* TO exam;
USE exam;

CREATE TABLE students (
	number INT UNSIGNED PRIMARY KEY,
	name VARCHAR(60) NOT NULL
);

CREATE TABLE questions (
	number INT UNSIGNED PRIMARY KEY,
	passage TEXT NOT NULL,      -- what the question is about
	text VARCHAR(200) NOT NULL,
	choices TEXT NOT NULL       -- four lines
);

CREATE TABLE answers (
	student INT UNSIGNED NOT NULL REFERENCES students (number),
	number INT UNSIGNED NOT NULL REFERENCES questions (number),
	choice CHAR(1) NOT NULL,
	recorded TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	PRIMARY KEY (student, number)
);
